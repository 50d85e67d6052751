package setup

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// upgrade has the daemon go on with the program that runs here, without an end to the mount. false: it runs that already, or one
// from another place, where it looks for a newer one.
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
			return false, fmt.Errorf("the daemon goes on with the program that it was started with:\n%s", daemon.trouble(context.WithoutCancel(ctx)))
		}
	}
	return true, nil
}

// isOutdated tells of a process whose program was replaced by this one.
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
