package doctor

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
)

// clockWarning is the maximum offset of a clock from cluster time. A larger one breaks nothing in lockfs,
// which reads a host's lock files by the host's clock. It confuses users, and programs comparing it with file
// times.
const clockWarning = 500 * time.Millisecond

func lookAtClock(ctx context.Context, h *host) []Finding {
	const advice = "run an NTP client: chrony, systemd-timesyncd or ntpd"
	var found []Finding
	switch synchronised, err := h.clock(); {
	case err != nil:
		found = append(found, unknown("", "the kernel does not say whether the clock is synchronised: %v", err))
	case synchronised:
		found = append(found, ok("the clock is synchronised"))
	default:
		found = append(found, warning(advice, "no service synchronises the clock"))
	}
	status, err := h.cluster(ctx)
	if err != nil || h.hasNoQuorum(ctx) {
		return found
	}
	took := status.came.Sub(status.asked)
	off := status.asked.Add(took / 2).Sub(status.Time)
	uncertain := took/2 + time.Millisecond
	if off.Abs() <= clockWarning+uncertain {
		return append(found, ok("the clock is within %v of cluster time", (off.Abs()+uncertain).Round(time.Millisecond)))
	}
	direction := "ahead of"
	if off < 0 {
		direction = "behind"
	}
	return append(found, warning(advice, "the clock is %v %s cluster time (give or take %v)",
		off.Abs().Round(time.Millisecond), direction, uncertain.Round(time.Millisecond)))
}

// readClock asks the kernel (adjtimex(2)) without a change.
func readClock() (synchronised bool, err error) {
	var clock unix.Timex
	state, err := unix.Adjtimex(&clock)
	return state != unix.TIME_ERROR && clock.Status&unix.STA_UNSYNC == 0, err
}
