package setup

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"
)

// service runs the daemon of this host: systemd if it runs, else a background process.
type service interface {
	// install makes the daemon start with the host, if possible, and reports whether it was missing.
	install() (changed bool, err error)

	// start starts it now and with the host.
	start(ctx context.Context) error

	// stop stops it and disables it. With force it uses SIGKILL if necessary.
	stop(ctx context.Context, force bool) error

	// remove undoes install.
	remove() error

	// running reports whether the daemon runs or starts.
	running(ctx context.Context) (bool, error)

	// pid returns the process of the daemon, or 0.
	pid(ctx context.Context) (int, error)

	// reload makes the process execute the newest program, without waiting. The mount stays.
	reload(ctx context.Context) error

	// String returns a description for the user.
	String() string

	// trouble returns the end of the daemon's log for an error.
	trouble(ctx context.Context) string
}

const (
	// stopTime is the time limit for the end of a daemon.
	stopTime = 30 * time.Second
	// upgradeLimit is the time limit for an upgrade, with the check that the new program can take over.
	upgradeLimit = 30 * time.Second
	// look is the polling interval.
	look = 100 * time.Millisecond
)

// systemdRuns reports whether systemd manages this host, as in sd_booted(3).
func systemdRuns() bool {
	info, err := os.Lstat("/run/systemd/system")
	return err == nil && info.IsDir()
}

// removeFile removes a file, which may be missing.
func removeFile(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
