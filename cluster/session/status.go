package session

import "lockfs/raftstore/storepb"

// Status returns this mount's view of itself.
func (c *Client) Status() *storepb.MountStatus {
	status := &storepb.MountStatus{Host: c.host, ClockOffset: c.offset.Load(), ClusterTime: c.likelyTime()}
	status.Session = uint64(c.lastSession())
	if leader := c.leader.Load(); leader != nil {
		status.Leader = *leader
	}
	return status
}
