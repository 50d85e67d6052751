package setup

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// upgrade makes the daemon execute this program; the mount stays. It returns false if the daemon runs this
// program already, or one at another path, where it looks for updates.
func upgrade(ctx context.Context, daemon service) (upgraded bool, err error) {
	pid, err := daemon.pid(ctx)
	if err != nil || pid == 0 || !isOutdated(pid) {
		return false, err
	}
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
	return true, nil
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
