package setup

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"lockfs/cluster/identity"
	"lockfs/cmd/lockfs/internal/cli"
)

// upgrade makes the daemon execute this program; the mount stays. It sets upgradedFrom. It returns false if
// the daemon runs this program already, or one at another path, where it looks for updates.
func (h *host) upgrade(ctx context.Context, daemon service) (upgraded bool, err error) {
	pid, err := daemon.pid(ctx)
	if err != nil || pid == 0 || !isOutdated(pid) {
		return false, err
	}
	from := h.runningVersion()
	if err := daemon.reload(ctx); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, upgradeLimit)
	defer cancel()
	for isOutdated(pid) {
		select {
		case <-time.After(look):
		case <-ctx.Done():
			return false, fmt.Errorf("the daemon still runs the program with which it was started:\n%s", daemon.trouble(context.WithoutCancel(ctx)))
		}
	}
	h.upgradedFrom = from
	return true, nil
}

// runningVersion returns the version of the daemon's program; "" if it does not answer.
func (h *host) runningVersion() string {
	kind, of := "mount", h.mount
	if h.role == identity.Server {
		kind, of = "server", h.name
	}
	about, err := cli.AskDaemon(cli.DebugSocket(kind, of))
	if err != nil {
		return ""
	}
	return about.Version
}

// describeUpgrade describes an upgrade by the versions, or another build of the same version.
func describeUpgrade(from, to string) string {
	if from == "" || from == to {
		return "it now runs the newest program, " + to
	}
	return cli.Text(from) + " → " + to
}

// isOutdated reports whether this program has replaced the file of a process's program.
func isOutdated(pid int) bool {
	exe := fmt.Sprintf("/proc/%d/exe", pid)
	path, err := os.Readlink(exe)
	own, errOwn := os.Executable()
	if err != nil || errOwn != nil || strings.TrimSuffix(path, " (deleted)") != own {
		return false
	}
	running, err := os.Stat(exe)
	newer, errNewer := os.Stat("/proc/self/exe")
	return err == nil && errNewer == nil && !os.SameFile(running, newer)
}
