package session

import (
	"time"

	"lockfs/raftstore/hostinfo"
)

// wallClock is what this host's clock said, nanoseconds since the Unix epoch.
func wallClock(at time.Time) int64 { return at.UnixNano() }

// ClusterTime is cluster time as the last keepalive told it. It goes on while the host sleeps, and does not
// follow this host's wall clock. It is ahead by at most what that keepalive took, and behind only by how far the
// cluster's clocks have drifted since. It is not known before a keepalive was answered (Session tells).
func (c *Client) ClusterTime() time.Time {
	return time.Unix(0, int64(hostinfo.BootTime())+c.ahead.Load())
}

// Offset is how far this host's clock is ahead of cluster time. A clock that was set back since the last keepalive is not as far
// ahead as that measured, and by that a lock which is written now would be stale at once, while its holder, who counts by
// no clock that is set, knew of nothing. Of the two that is meant which makes a lock stale later: if it is the host that
// stood still, and its clock that was put right, the one measured is.
func (c *Client) Offset() time.Duration {
	return time.Duration(min(c.offset.Load(), wallClock(time.Now())-c.ClusterTime().UnixNano()))
}

// likelyTime is cluster time as likely as not, and this host's before a keepalive was answered.
func (c *Client) likelyTime() int64 {
	if ahead := c.ahead.Load(); ahead != 0 {
		return int64(hostinfo.BootTime()) + ahead - c.took.Load()/2
	}
	return wallClock(time.Now())
}
