package session

import (
	"time"

	"lockfs/raftstore/fault"
	"lockfs/raftstore/hostinfo"
)

// wallClock is what this host's clock said, nanoseconds since the Unix epoch.
func wallClock(at time.Time) int64 { return at.UnixNano() + int64(fault.ClockOffset()) }

// ClusterTime is cluster time as the last keepalive told it. It goes on while the host sleeps, and does not
// follow this host's wall clock. It is ahead by at most what that keepalive took, and behind only by how far the
// cluster's clocks have drifted since. It is not known before a keepalive was answered (Session tells).
func (c *Client) ClusterTime() time.Time {
	return time.Unix(0, int64(hostinfo.BootTime())+c.ahead.Load())
}

// Offset is how far this host's clock is ahead of cluster time, as last measured.
func (c *Client) Offset() time.Duration { return time.Duration(c.offset.Load()) }
