package admin

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"lockfs/cluster"
	"lockfs/cluster/health"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/fusefs/mountpoint"
	"lockfs/raftstore/lockjson"
)

// standingTime is the time limit for all requests to the cluster.
const standingTime = 5 * time.Second

// Standing is the program without a command. It shows in a few lines the mounts of this host, the health of
// its cluster, its locks, and the next commands. Without a quorum its exit code is 1.
func Standing(cmd *cobra.Command, _ []string) error {
	return standing(cmd.Context(), cmd.OutOrStdout())
}

func standing(ctx context.Context, w io.Writer) error {
	mounts, err := mountpoint.All()
	if err != nil {
		return err
	}
	states := make(chan []string, 1)
	go func() {
		var lines []string
		for _, dir := range mounts[:min(len(mounts), 2)] {
			lines = append(lines, describeMount(dir))
		}
		states <- lines
	}()
	var healthy health.Health
	var leader string
	var locks []lockjson.Lock
	var unseen error // why locks are unknown
	failed := withAdmin(ctx, &cli.ClusterFlags{Timeout: standingTime}, func(ctx context.Context, admin *cluster.Admin) error {
		var nodes []cluster.NodeStatus
		var err error
		if healthy, nodes, err = admin.Health(ctx, false); err != nil || !healthy.Confirmed {
			return err
		}
		leader = summarize(healthy, nodes).Leader
		locks, unseen = findLocks(ctx, admin, "")
		return nil
	})
	if failed == nil && !healthy.Confirmed {
		fmt.Fprintln(w, cli.Text(healthy.String()))
	}
	fmt.Fprintf(w, "lockfs %s\n", cli.ProgramVersion())
	line := func(what, format string, args ...any) {
		fmt.Fprintf(w, "  %-9s %s\n", what, fmt.Sprintf(format, args...))
	}
	if len(mounts) == 0 {
		line("mounted", "not on this host: `lockfs up` mounts, `lockfs dev` starts a trial")
	}
	select {
	case lines := <-states:
		for _, text := range lines {
			line("mounted", "%s", text)
		}
	case <-time.After(mountWait):
		for _, dir := range mounts[:min(len(mounts), 2)] {
			line("mounted", "%s, which does not answer", cli.Text(dir))
		}
	}
	if len(mounts) > 2 {
		line("mounted", "and at %d more places", len(mounts)-2)
	}
	switch {
	case failed != nil:
		line("cluster", "%s", cli.Text(failed.Error()))
	case !healthy.Confirmed:
		line("cluster", "`lockfs status` shows each server")
	default:
		line("cluster", "led by %s; %s", cmp.Or(cli.Text(leader), "(not known)"), cli.Text(healthy.String()))
		if unseen != nil {
			line("locks", "%s", cli.Text(unseen.Error()))
			break
		}
		line("locks", "%s", describeLocks(locks, hostNames()))
	}
	line("next", "lockfs status, lockfs locks, lockfs events, lockfs why PATH")
	line("help", "lockfs --help, lockfs help locks, lockfs doctor")
	if failed == nil && !healthy.Confirmed {
		return cli.Exit(1, nil)
	}
	return nil
}

// mountWait is how much longer than the cluster a mount may take.
const mountWait = 100 * time.Millisecond

// describeMount describes a mount and the state of its daemon.
func describeMount(dir string) string {
	dead, err := mountpoint.State(dir)
	switch {
	case dead:
		return cli.Text(dir) + ", whose daemon has ended: `lockfs up` mounts it again"
	case err != nil:
		return cli.Text(dir) + ", which does not answer"
	}
	return cli.Text(dir)
}

// hostNames returns the names under which the cluster may know this host.
func hostNames() []string {
	var names []string
	if name, err := cli.HostName(); err == nil {
		names = append(names, name)
	}
	if name := os.Getenv("LOCKFS_NAME"); name != "" {
		names = append(names, name)
	}
	return names
}

// describeLocks counts the held locks, those of this host, and those with problems.
func describeLocks(locks []lockjson.Lock, here []string) string {
	held, own, stale := 0, 0, 0
	for _, lock := range locks {
		if lock.State != "held" {
			stale++
			continue
		}
		held++
		if slices.Contains(here, lock.Host) {
			own++
		}
	}
	text := fmt.Sprintf("%d held, %d of them by this host", held, own)
	if stale > 0 {
		text += fmt.Sprintf("; %d stale or on unreachable hosts", stale)
	}
	return text
}
