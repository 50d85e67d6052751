package session

import (
	"time"

	"lockfs/raftstore/hostinfo"
)

func wallClock(at time.Time) int64 { return at.UnixNano() }

// ClusterTime returns cluster time, derived from the last keepalive. It continues while the host sleeps, and
// ignores changes of the wall clock. It is ahead by at most the duration of the keepalive, and behind only by
// clock drift since then. It is unknown before the first keepalive reply (see Session).
func (c *Client) ClusterTime() time.Time {
	return time.Unix(0, int64(hostinfo.BootTime())+c.ahead.Load())
}

// Offset returns how far this host's clock is ahead of cluster time. It is the lower of two values: the
// offset of the last keepalive, and the current difference. The lower one makes a lock stale later.
//
// If the clock was set back since the keepalive, the measured offset is too high. A new lock would then be
// stale at once, and its holder would not know. If the host slept and its clock was corrected, the measured
// offset is right.
func (c *Client) Offset() time.Duration {
	return time.Duration(min(c.offset.Load(), wallClock(time.Now())-c.ClusterTime().UnixNano()))
}

// likelyTime returns the best estimate of cluster time; before the first keepalive reply, this host's time.
func (c *Client) likelyTime() int64 {
	if ahead := c.ahead.Load(); ahead != 0 {
		return int64(hostinfo.BootTime()) + ahead - c.took.Load()/2
	}
	return wallClock(time.Now())
}
