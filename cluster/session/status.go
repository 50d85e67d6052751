package session

import (
	"time"

	"lockfs/raftstore/hostinfo"
	"lockfs/raftstore/storepb"
)

// Status is what this mount knows of itself.
func (c *Client) Status() *storepb.MountStatus {
	status := &storepb.MountStatus{
		Host: c.host, ClockOffset: c.offset.Load(), ClusterTime: wallClock(time.Now()) - c.offset.Load(),
	}
	status.Session = c.lastSession()
	if leader := c.leader.Load(); leader != nil {
		status.Leader = *leader
	}
	return status
}

// ClusterTime is cluster time as the last keepalive told it. It goes on while the host sleeps, and does not
// follow this host's wall clock. It is ahead by at most what that keepalive took, and behind only by how far the
// cluster's clocks have drifted since. It is not known before a keepalive was answered (Session tells).
func (c *Client) ClusterTime() time.Time {
	return time.Unix(0, int64(hostinfo.BootTime())+c.ahead.Load())
}

// Offset is how far this host's clock is ahead of cluster time, as last measured.
func (c *Client) Offset() time.Duration { return time.Duration(c.offset.Load()) }
