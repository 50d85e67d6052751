package setup

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"
)

// service keeps the daemon of this host running: systemd where it runs, else nothing but the daemon itself.
type service interface {
	// install makes it start with the host, where there is something that does that, and answers whether that was missing.
	install() (changed bool, err error)

	// start starts it, now and with the host, unless it runs.
	start(ctx context.Context) error

	// stop stops it, with SIGKILL if force is true and it does not stop, and keeps it from starting with the host.
	stop(ctx context.Context, force bool) error

	// remove takes away what install made.
	remove() error

	// running tells whether the daemon runs, or is on its way.
	running(ctx context.Context) (bool, error)

	// pid is the process of the daemon that runs; 0 if none does.
	pid(ctx context.Context) (int, error)

	// reload has the newest program go on with the mount, in the process that runs. It does not wait for that.
	reload(ctx context.Context) error

	// String says what it is, for people.
	String() string

	// trouble is what the daemon said last, for an error.
	trouble(ctx context.Context) string
}

const (
	// stopTime is how long a daemon may take to stop.
	stopTime = 30 * time.Second
	// upgradeLimit is how long it may take until another program goes on in its place: it makes sure first that that can.
	upgradeLimit = 30 * time.Second
	// look is how often it is looked whether something waited for is so.
	look = 100 * time.Millisecond
)

// systemdRuns tells whether systemd manages this host, as sd_booted(3) has it.
func systemdRuns() bool {
	info, err := os.Lstat("/run/systemd/system")
	return err == nil && info.IsDir()
}

// removeFile removes one that may be gone.
func removeFile(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
