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

// Linux 5.3 is the oldest with pidfd_open(2), which watches holders. Linux 6.9 adds FUSE_NOTIFY_RESEND, and
// an interrupted open leaves no file behind. Linux 6.3 to 6.5.3 closes the files of a process some time after
// its end (fuse_flush), when the next process may have its number as an owner of locks.
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
		return one(failed("use a newer kernel", "Linux %s has no pidfd_open: lockfs cannot watch the processes with locks", release))
	case !before(version, lateKernel) && before(version, timelyKernel):
		return one(warning("use Linux 6.9 or newer", "Linux %s may close the files of a dead process late, and with them drop fcntl locks "+
			"of the next process (fixed in 6.5.3), and cannot resend requests after a crash of the mount's process", release))
	case before(version, askingKernel):
		return one(warning("use Linux 6.9 or newer", "Linux %s cannot resend requests: a crash of the mount's process "+
			"ends the mount, and an interrupted creation may leave its file behind", release))
	}
	return one(ok("Linux %s", release))
}

func before(a, b [2]int) bool { return a[0] < b[0] || a[0] == b[0] && a[1] < b[1] }

// leastTimeout is the shortest harmless limit of the kernel for requests: calls wait up to --op-timeout for a
// quorum.
const leastTimeout = 60

func lookAtTimeouts(_ context.Context, h *host) []Finding {
	var found []Finding
	for _, name := range []string{"default_request_timeout", "max_request_timeout"} {
		path := h.path("proc/sys/fs/fuse/" + name)
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // missing before Linux 6.16
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
			found = append(found, failed(advice, "%s is %d s: the kernel ends a mount after as long without a reply of its cluster", name, seconds))
		case seconds > 0:
			found = append(found, warning(advice, "%s is %d s: a wait for a flock or fcntl lock fails with EAGAIN after half of it", name, seconds))
		}
	}
	if found == nil {
		return one(ok("the kernel does not limit requests"))
	}
	return found
}
