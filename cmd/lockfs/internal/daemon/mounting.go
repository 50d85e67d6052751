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
	"lockfs/fusefs/observation"
)

// mount mounts, under guard, in a directory that is created if it is missing, or goes on with what was mounted there.
func mount(dir string, client *session.Client, options fusefs.Options, inherited *inheritance) (*fusefs.Mounted, *guardKeeper, error) {
	options.Family = family
	var guard *guardKeeper
	watch := func(mounted *fusefs.Mounted) (err error) {
		if guard, err = startGuard(client, mounted, inherited, options.Logger); err == nil {
			inherited.guarded() // before there is a token: of two guards each would start a process after this one
			err = guard.giveToken()
		}
		return err
	}
	if inherited != nil { // programs are there already, whose answers want a guard
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

// endSession says farewell for a mount. If that is nil, nobody knows what programs have: it failed, perhaps after it could be
// used.
func endSession(client *session.Client, mounted *fusefs.Mounted) error {
	return withGrace(func(ctx context.Context) error {
		return client.Leave(ctx, func() bool { return mounted == nil || mounted.InUse() })
	})
}

// family tells fusefs who makes a request.
func family(thread uint32) iter.Seq[observation.Process] {
	return func(yield func(observation.Process) bool) {
		for id := range process.Group(int(thread)) {
			if !yield(observation.Process{PID: id.PID, Start: id.Start}) {
				return
			}
		}
	}
}

// requireHostNamespace returns an error if the unit that systemd has started this process in has a mount namespace of its own: no other program
// would see the mount, and all would lock in the bare directory.
func requireHostNamespace() error {
	if os.Getenv("NOTIFY_SOCKET") == "" || os.Getppid() != 1 {
		return nil // systemd has not started it, or not as a service of the host
	}
	own, err := os.Readlink("/proc/self/ns/mnt")
	hosts, failed := os.Readlink("/proc/1/ns/mnt")
	if err != nil || failed != nil || own == hosts {
		return nil
	}
	return errors.New("this unit has a mount namespace of its own, so no other program would see the mount: remove settings such as ProtectSystem=, " +
		"PrivateTmp= or ReadWritePaths= (`systemctl cat lockfs` shows them)")
}

// makeMountPoint creates a directory that is missing. What a dead process left mounted there is for
// fusefs to clean up.
func makeMountPoint(dir string) error {
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("mount point: %w", err)
	}
	return nil
}

// absolute keeps a directory's meaning when it is shown to somebody elsewhere.
func absolute(dir string) (string, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("directory %q: %w", dir, err)
	}
	return path, nil
}
