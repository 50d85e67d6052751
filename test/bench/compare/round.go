package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"lockfs/test/stats"
)

// contestants are all running systems.
type contestants struct {
	settings  *settings
	servers   map[string]server // of lockfs
	client    string            // mount of lockfs
	endpoints []string          // of etcd
	gluster   string            // mount of GlusterFS; empty: missing
	bare      []string          // mounts of the bare FUSE file system
	local     string            // on the disk of all data

	versions []string
	kernel   string
	disk     string
}

// startOthers starts the systems to compare with.
func (c *contestants) startOthers(ctx context.Context, d *daemons) (err error) {
	fmt.Fprintln(os.Stderr, "starting the others")
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	if c.endpoints, err = startEtcd(c.settings, d); err != nil {
		return err
	}
	if c.bare, err = startBare(c.settings, d); err != nil {
		return err
	}
	if c.gluster, err = startGlusterFS(ctx, d); errors.Is(err, errNotInstalled) {
		fmt.Fprintln(os.Stderr, "compare:", err)
	} else if err != nil {
		return err
	}
	return nil
}

// describe collects versions and facts about the machine.
func (c *contestants) describe(ctx context.Context) error {
	commands := [][]string{{c.settings.lockfsProgram(), "version"}}
	if len(c.endpoints) > 0 {
		commands = append(commands, []string{c.settings.etcdProgram(), "server", "--version"})
	}
	if c.gluster != "" {
		commands = append(commands, []string{"gluster", "--version"})
	}
	for _, command := range commands {
		version, err := firstLine(ctx, command...)
		if err != nil {
			return err
		}
		c.versions = append(c.versions, version)
	}
	report, err := c.run(ctx, c.settings.contestProgram(), "--only", "stat", "--duration", "1ms", c.local)
	if err != nil {
		return err
	}
	c.kernel, c.disk = report.Kernel, report.Directories[0].Type
	return nil
}

// The contestants' names in the table.
const (
	lockfsLeads   = "lockfs, leader"
	lockfsFollows = "lockfs, follower"
	lockfsClient  = "lockfs, client"
	lockfsAll     = "lockfs, three mounts"
	etcdLeads     = "etcd, leader"
	etcdFollows   = "etcd, follower"
	etcdAll       = "etcd, three members"
	glusterFS     = "GlusterFS"
	bareFUSE      = "bare FUSE"
	bareAll       = "bare FUSE, three mounts"
)

// inOwnDirs marks measurements with one directory per worker.
const inOwnDirs = " in own directories"

// round measures everything once, in the order of the table. Systems to compare are measured in turn.
func (c *contestants) round(ctx context.Context, t *table) error {
	t.nextRound()
	leader, err := lockfsLeader(ctx, c.settings)
	if err != nil {
		return err
	}
	if c.servers[leader].daemon == nil {
		return fmt.Errorf("lockfs has no leader, but %q", leader)
	}
	follower := "a"
	if leader == follower {
		follower = "b"
	}
	mounts := []string{c.servers[leader].mount, c.servers[follower].mount, c.client}
	names := map[string]string{mounts[0]: lockfsLeads, mounts[1]: lockfsFollows, mounts[2]: lockfsClient,
		strings.Join(mounts, " "): lockfsAll, c.gluster: glusterFS, c.local: c.disk,
		c.bare[0]: bareFUSE, c.bare[1]: bareFUSE, strings.Join(c.bare, " "): bareAll}
	others := []string{c.local}
	if c.gluster != "" {
		others = []string{c.gluster, c.local}
	}
	single := append(slices.Clone(mounts), append(others, c.bare[0])...)
	endpoint, err := output(ctx, append([]string{c.settings.etcdProgram(), "leader"}, c.endpoints...)...)
	if err != nil {
		return err
	}
	endpoints := first(c.endpoints, endpoint)
	names[endpoints[0]], names[endpoints[1]], names[strings.Join(endpoints, " ")] = etcdLeads, etcdFollows, etcdAll

	lockfs := func(workers int, only string, args ...string) error {
		return c.measure(ctx, t, names, workers, c.settings.contestProgram(), append([]string{"--only", only}, args...)...)
	}
	etcd := func(workers int, args ...string) error {
		return c.measure(ctx, t, names, workers, c.settings.etcdProgram(), append([]string{"bench"}, args...)...)
	}
	many := c.settings.workers
	for _, step := range []func() error{
		func() error { return lockfs(1, "cycle", single...) },
		func() error { return etcd(1, endpoints[:2]...) },
		func() error { return lockfs(many, "cycle", append([]string{"--together"}, mounts...)...) },
		func() error { return lockfs(many, "cycle", append([]string{"--together", "--own-dirs"}, mounts...)...) },
		func() error { return lockfs(many, "cycle", append([]string{"--together", "--own-dirs"}, c.bare...)...) },
		func() error { return etcd(many, append([]string{"--together"}, endpoints...)...) },
		func() error { return etcd(many, endpoints[0]) },
		func() error { return lockfs(many, "cycle", others...) },
		func() error { return lockfs(many, "cycle", append([]string{"--own-dirs"}, others...)...) },
		func() error { return lockfs(1, "stat,mkdir,cat,list", single...) },
		func() error { return lockfs(1, "flock,handover-flock,handover-create", append(mounts, others...)...) },
		func() error { return lockfs(1, "handover-create", c.bare[:2]...) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// measure runs a measuring program and adds its output to the table.
func (c *contestants) measure(
	ctx context.Context, t *table, names map[string]string, workers int, program string, args ...string,
) error {
	// Both programs expect flags first.
	flags := []string{args[0], "--workers", strconv.Itoa(workers), "--duration", c.settings.duration.String()}
	command := append(append([]string{program}, flags...), args[1:]...)
	fmt.Fprintln(os.Stderr, " ", strings.ReplaceAll(strings.Join(command, " "), c.settings.dir+"/", ""))
	report, err := c.run(ctx, command...)
	if err != nil {
		return err
	}
	for _, r := range report.Results {
		where := names[strings.Join(r.Directories, " ")]
		if where == "" { // a handover between two mounts
			where = names[r.Directories[0]] + " and " + strings.TrimPrefix(names[r.Directories[1]], "lockfs, ")
		}
		what := r.Measurement
		if report.OwnDirs {
			what += inOwnDirs
		}
		t.add(key{what, workers, where}, r)
	}
	return nil
}

func (c *contestants) run(ctx context.Context, args ...string) (stats.Report, error) {
	var report stats.Report
	ctx, cancel := context.WithTimeout(ctx, 2*patience+100*c.settings.duration) // no step has a hundred figures
	defer cancel()
	text, err := output(ctx, args...)
	if err != nil {
		return report, err
	}
	if err := json.Unmarshal([]byte(text), &report); err != nil {
		return report, fmt.Errorf("%w in %s", err, text)
	}
	return report, nil
}
