package daemon

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"

	"lockfs/cluster/process"
	"lockfs/cluster/session"
	"lockfs/fusefs"
	"lockfs/fusefs/lookguard"
)

// mount mounts in a directory, which it creates if necessary, or takes over the inherited mount. It starts
// the guard.
func mount(dir string, client *session.Client, options fusefs.Options, inherited *handoffState) (*fusefs.Mounted, *guardClient, error) {
	options.Family = family
	var guard *guardClient
	watch := func(mounted *fusefs.Mounted) (err error) {
		if guard, err = startGuard(client, mounted, inherited, options.Logger); err == nil {
			inherited.guarded() // before the token exists: otherwise two guards could each start a next process
			err = guard.giveToken()
		}
		return err
	}
	if inherited != nil { // programs use the mount already, and a guard protects their replies
		mounted, err := fusefs.TakeOver(inherited.state, inherited.files, client.Answers(), client, options, watch)
		return mounted, guard, err
	}
	if err := makeMountPoint(dir); err != nil {
		return nil, nil, err
	}
	mounted, err := fusefs.Mount(dir, client, options)
	if err != nil {
		return nil, nil, err
	}
	if err := watch(mounted); err != nil {
		return nil, nil, errors.Join(err, mounted.Unmount(), mounted.End(nil))
	}
	return mounted, guard, nil
}

// endSession closes the session of a mount. A nil mount has failed, perhaps after programs have used it;
// their locks are then unknown.
func endSession(client *session.Client, mounted *fusefs.Mounted) error {
	return withGrace(func(ctx context.Context) error {
		return client.Leave(ctx, func() bool { return mounted == nil || mounted.InUse() })
	})
}

// family tells fusefs the relatives of a request's process.
func family(thread uint32) iter.Seq[lookguard.Process] {
	return func(yield func(lookguard.Process) bool) {
		for id := range process.Group(int(thread)) {
			if !yield(lookguard.Process{PID: id.PID, Start: id.Start}) {
				return
			}
		}
	}
}

// requireHostNamespace returns an error if this process's systemd unit has a mount namespace of its own.
// Other programs would not see the mount, and would lock in the bare directory.
func requireHostNamespace() error {
	if os.Getenv("NOTIFY_SOCKET") == "" || os.Getppid() != 1 {
		return nil // not started by systemd, or not as a service of the host
	}
	own, err := os.Readlink("/proc/self/ns/mnt")
	hosts, failed := os.Readlink("/proc/1/ns/mnt")
	if err != nil || failed != nil || own == hosts {
		return nil
	}
	return errors.New("this unit has a mount namespace of its own, in which other programs do not see the mount: remove settings such as ProtectSystem=, " +
		"PrivateTmp= or ReadWritePaths= (`systemctl cat lockfs` shows them)")
}

// makeMountPoint creates a missing directory. fusefs cleans up the mount of a dead process.
func makeMountPoint(dir string) error {
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("mount point: %w", err)
	}
	return nil
}

// absolute makes a path independent of the working directory.
func absolute(dir string) (string, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("directory %q: %w", dir, err)
	}
	return path, nil
}
