// Package sdnotify reports the state of the daemon to systemd (sd_notify(3)): ready, reloading, stopping,
// and a watchdog. It does nothing without systemd.
package sdnotify

import (
	"context"
	"log/slog"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Ready reports a working daemon; for a mount, the locks are available. It follows each [Reloading].
func Ready() { tell(daemon.SdNotifyReady + "\nSTATUS=") }

// Reloading reports an upgrade in this process, or a reload of its settings.
func Reloading() { tell(daemon.SdNotifyReloading) }

// Stopping reports the beginning of the stop.
func Stopping() { tell(daemon.SdNotifyStopping) }

// Status sets the status line until Ready.
func Status(line string) { tell("STATUS=" + line) }

// tell ignores errors: systemd reacts to missing messages.
func tell(state string) { _, _ = daemon.SdNotify(false, state) }

// A Loop is a loop essential to the daemon.
type Loop struct {
	Name string
	Due  func() time.Time // deadline of its next iteration
}

// Watch sends watchdog messages until ctx ends, as long as all loops iterate. Their success does not matter:
// a restart would not help a daemon without a cluster. Without messages systemd kills the daemon, which
// prints its goroutines (WatchdogSec in systemd.service(5)).
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
			logger.Error("a part of this process hangs; systemd restarts the daemon unless it continues",
				"part", late.Name, "due", late.Due())
		}
		select {
		case <-ticks:
		case <-ctx.Done():
			return
		}
	}
}

// patience is the grace time of a loop on a busy host.
const patience = time.Minute

// late returns a loop after its deadline, or nil.
func late(loops []Loop) *Loop {
	for i := range loops {
		if time.Since(loops[i].Due()) > patience {
			return &loops[i]
		}
	}
	return nil
}
