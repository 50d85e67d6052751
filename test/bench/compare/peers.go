package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// server is a lockfs server with its mount.
type server struct {
	*daemon
	mount string
}

// startLockfs starts three servers with a mount each, and a mount without a server. It returns the servers by
// name.
func startLockfs(s *settings, d *daemons) (servers map[string]server, client string, err error) {
	servers = make(map[string]server)
	for i, name := range serverNames {
		if servers[name], err = startServer(s, d, i); err != nil {
			return nil, "", err
		}
	}
	_, client, err = startMount(s, d, "client")
	return servers, client, err
}

var serverNames = []string{"a", "b", "c"}

// startServer starts the i-th server, or starts it again.
func startServer(s *settings, d *daemons, i int) (server, error) {
	name := serverNames[i]
	data, mount := filepath.Join(s.diskOf(i), "lockfs-"+name), filepath.Join(d.dir, "lockfs-mount-"+name)
	enter := []string{"--join", addresses[0] + ":7420"}
	if i == 0 {
		enter = nil
		if _, err := os.Stat(filepath.Join(data, "node.json")); err != nil {
			init := exec.Command(s.lockfsProgram(), "server", "init", "--name", name, "--data", data, "--addr", addresses[i]+":7420", "--insecure")
			if out, err := init.CombinedOutput(); err != nil {
				return server{}, fmt.Errorf("%w: %s", err, out)
			}
		}
	}
	started, err := d.start(name, "lockfs: "+name+" ready", append([]string{
		s.lockfsProgram(), "server", "--name", name, "--data", data, "--mount", mount,
		"--addr", addresses[i] + ":7420", "--insecure", "--http-addr", "",
	}, enter...)...)
	return server{started, mount}, err
}

func startMount(s *settings, d *daemons, name string) (started *daemon, mount string, err error) {
	var servers []string
	for _, address := range addresses {
		servers = append(servers, address+":7420")
	}
	mount = filepath.Join(d.dir, "lockfs-mount-"+name)
	started, err = d.start(name, "lockfs: ready at ", s.lockfsProgram(), "mount", "--insecure", "--servers", strings.Join(servers, ","), mount)
	return started, mount, err
}

// lockfsLeader returns the name of the leader.
func lockfsLeader(ctx context.Context, s *settings) (string, error) {
	text, err := output(ctx, s.lockfsProgram(), "status", "--json", "--servers", addresses[0]+":7420", "--insecure")
	if err != nil {
		return "", err
	}
	var status struct{ Leader string }
	if err := json.Unmarshal([]byte(text), &status); err != nil {
		return "", fmt.Errorf("%w in %s", err, text)
	}
	return status.Leader, nil
}

// startEtcd starts three members and returns their addresses.
func startEtcd(s *settings, d *daemons) (endpoints []string, err error) {
	var peers []string
	for i, name := range serverNames {
		peers = append(peers, fmt.Sprintf("%s=http://%s:2380", name, addresses[i]))
		endpoints = append(endpoints, "http://"+addresses[i]+":2379")
	}
	// A member is ready only when a second one runs.
	started := make(chan error, len(serverNames))
	for i, name := range serverNames {
		peer := fmt.Sprintf("http://%s:2380", addresses[i])
		go func() {
			_, err := d.start(name, "ready to serve client requests", s.etcdProgram(), "server", "--name", name,
				"--data-dir", filepath.Join(s.diskOf(i), "etcd-"+name), "--log-level", "info",
				"--listen-client-urls", endpoints[i], "--advertise-client-urls", endpoints[i],
				"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
				"--initial-cluster", strings.Join(peers, ","), "--initial-cluster-state", "new")
			started <- err
		}()
	}
	for range serverNames {
		err = errors.Join(err, <-started)
	}
	return endpoints, err
}

// startBare mounts one tmpfs three times through a bare FUSE file system.
func startBare(s *settings, d *daemons) (mounts []string, err error) {
	files, err := d.folder("bare-files")
	if err != nil {
		return nil, err
	}
	if err := unix.Mount("bare", files, "tmpfs", 0, "mode=1777"); err != nil {
		return nil, fmt.Errorf("mount a tmpfs: %w", err)
	}
	for _, name := range serverNames {
		mount, err := d.folder("bare-mount-" + name)
		if err != nil {
			return nil, err
		}
		if _, err := d.start(name, "bare: ready", s.program("bare"), files, mount); err != nil {
			return nil, err
		}
		mounts = append(mounts, mount)
	}
	return mounts, nil
}

var errNotInstalled = errors.New("GlusterFS is not installed (Debian: apt install glusterfs-server)")

// startGlusterFS creates a volume of three replicas and mounts it.
func startGlusterFS(ctx context.Context, d *daemons) (mount string, err error) {
	if _, err := exec.LookPath("glusterd"); err != nil {
		return "", errNotInstalled
	}
	// These mounts keep its files out of the machine's directories.
	for name, place := range map[string]string{"gluster-state": "/var/lib/glusterd", "gluster-log": "/var/log/glusterfs"} {
		folder, err := d.folder(name)
		if err != nil {
			return "", err
		}
		if err := unix.Mount(folder, place, "", unix.MS_BIND, ""); err != nil {
			return "", fmt.Errorf("bind %s: %w", place, err)
		}
	}
	if _, err := output(ctx, "glusterd"); err != nil {
		return "", err
	}
	if err := eventually(ctx, "gluster", "--mode=script", "pool", "list"); err != nil {
		return "", err
	}
	create := []string{"gluster", "--mode=script", "volume", "create", "locks", "replica", "3"}
	for _, brick := range []string{"gluster-a", "gluster-b", "gluster-c"} {
		create = append(create, addresses[0]+":"+filepath.Join(d.dir, brick))
	}
	if _, err := output(ctx, append(create, "force")...); err != nil {
		return "", err
	}
	if _, err := output(ctx, "gluster", "--mode=script", "volume", "start", "locks"); err != nil {
		return "", err
	}
	if mount, err = d.folder("gluster-mount"); err != nil {
		return "", err
	}
	_, err = output(ctx, "mount", "-t", "glusterfs", addresses[0]+":/locks", mount)
	return mount, err
}

// eventually repeats a program until it succeeds.
func eventually(ctx context.Context, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		_, err := output(ctx, args...)
		if err == nil || ctx.Err() != nil {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// first returns the list with one element moved to the front.
func first(of []string, one string) []string {
	return append([]string{one}, slices.DeleteFunc(slices.Clone(of), func(s string) bool { return s == one })...)
}
