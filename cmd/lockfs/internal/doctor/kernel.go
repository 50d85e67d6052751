package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// Linux 5.3 is the oldest with pidfd_open(2), by which holders are watched; from 6.9 on there is FUSE_NOTIFY_RESEND, and an open that a
// signal ends leaves nothing behind. From 6.3 until 6.5.3 the files of a process that ends are closed some time after it has ended (fuse_flush),
// when the next one may have its number as an owner of locks.
var (
	oldestKernel = [2]int{5, 3}
	lateKernel   = [2]int{6, 3}
	timelyKernel = [2]int{6, 6}
	askingKernel = [2]int{6, 9}
)

func lookAtKernel(_ context.Context, h *host) []Finding {
	text, err := os.ReadFile(h.path("proc/sys/kernel/osrelease"))
	release := strings.TrimSpace(string(text))
	var version [2]int
	if err == nil {
		_, err = fmt.Sscanf(release, "%d.%d", &version[0], &version[1])
	}
	switch {
	case err != nil:
		return one(unknown("", "the kernel's version cannot be read: %v", err))
	case before(version, oldestKernel):
		return one(failed("use a newer kernel", "Linux %s has no pidfd_open: the processes that hold locks cannot be watched", release))
	case !before(version, lateKernel) && before(version, timelyKernel):
		return one(warning("use Linux 6.9 or newer", "Linux %s may close the files of a process that has ended so late that the fcntl locks go "+
			"which the next one has taken (mended in 6.5.3), and cannot ask again what the mount's process leaves undone", release))
	case before(version, askingKernel):
		return one(warning("use Linux 6.9 or newer", "Linux %s cannot ask again what a process leaves undone: a crash of the mount's process "+
			"ends the mount, and a creation that is interrupted may leave its file behind", release))
	}
	return one(ok("Linux %s", release))
}

func before(a, b [2]int) bool { return a[0] < b[0] || a[0] == b[0] && a[1] < b[1] }

// leastTimeout is below which a limit of the kernel for requests gets in the way of ordinary calls, which wait for a majority for
// --op-timeout.
const leastTimeout = 60

func lookAtTimeouts(_ context.Context, h *host) []Finding {
	var found []Finding
	for _, name := range []string{"default_request_timeout", "max_request_timeout"} {
		path := h.path("proc/sys/fs/fuse/" + name)
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // before Linux 6.16 there is none
		}
		seconds := 0
		if err == nil {
			seconds, err = strconv.Atoi(strings.TrimSpace(string(text)))
		}
		advice := "set it to 0: sysctl fs.fuse." + name + "=0"
		switch {
		case err != nil:
			found = append(found, unknown("", "%s cannot be read: %v", path, err))
		case seconds > 0 && seconds < leastTimeout:
			found = append(found, failed(advice, "%s is %d s: the kernel ends a mount whose cluster does not answer for as long", name, seconds))
		case seconds > 0:
			found = append(found, warning(advice, "%s is %d s: a wait for a flock or fcntl lock ends with EAGAIN after half of it", name, seconds))
		}
	}
	if found == nil {
		return one(ok("requests may wait as long as they need"))
	}
	return found
}
