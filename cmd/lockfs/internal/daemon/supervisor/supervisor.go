// Package supervisor tells systemd how the daemon of this process fares (sd_notify(3)): that it works, that another program takes its
// place, that it stops, and, as long as it does what it has to, that it is alive. A process that nobody supervises tells nobody.
package supervisor

import (
	"context"
	"log/slog"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Ready says that the daemon can be used: of a mount, that the locks are there. After [Reloading] it is to be said again.
func Ready() { tell(daemon.SdNotifyReady + "\nSTATUS=") }

// Reloading says that the daemon is about to become another one in this process, or to read its settings anew.
func Reloading() { tell(daemon.SdNotifyReloading) }

// Stopping says that the daemon begins to stop.
func Stopping() { tell(daemon.SdNotifyStopping) }

// Status says to people what the daemon is about, in a line; it is forgotten when it is ready.
func Status(line string) { tell("STATUS=" + line) }

// tell has no error: systemd goes by what it does not hear.
func tell(state string) { _, _ = daemon.SdNotify(false, state) }

// A Loop is one that the daemon cannot do without.
type Loop struct {
	Name string
	Due  func() time.Time // by when it is to begin anew
}

// Watch says that the daemon is alive, until ctx ends, for as long as its loops go round. Whether anybody answers them is not asked: a
// daemon without a cluster is as good as another in its place. Once it says nothing any more systemd kills it, which prints where
// all of it was (WatchdogSec in systemd.service(5)).
func Watch(ctx context.Context, logger *slog.Logger, loops ...Loop) {
	interval, err := daemon.SdWatchdogEnabled(false)
	if err != nil || interval == 0 {
		return
	}
	go watch(ctx, logger, time.Tick(interval/3), loops)
}

func watch(ctx context.Context, logger *slog.Logger, ticks <-chan time.Time, loops []Loop) {
	for {
		if late := late(loops); late == nil {
			tell(daemon.SdNotifyWatchdog)
		} else {
			logger.Error("a part of this process does not go on; unless it does, systemd starts the daemon anew",
				"part", late.Name, "due", late.Due())
		}
		select {
		case <-ticks:
		case <-ctx.Done():
			return
		}
	}
}

// patience is what a loop has besides: hosts are busy at times.
const patience = time.Minute

// late is a loop that should have gone round; nil: there is none.
func late(loops []Loop) *Loop {
	for i := range loops {
		if time.Since(loops[i].Due()) > patience {
			return &loops[i]
		}
	}
	return nil
}
