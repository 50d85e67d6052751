package session

import (
	"lockfs/raftstore/codec"
	"lockfs/raftstore/storepb"
	"lockfs/raftstore/version"
)

// RunsAt returns the last known version of the cluster.
func (c *Client) RunsAt() uint32 { return max(c.runsAt.Load(), version.Oldest) }

// notYet returns UNSUPPORTED for requests newer than the last known cluster version, without asking servers:
// they may not know the request. It returns nil for all others.
func (c *Client) notYet(request codec.Request) *storepb.Result {
	at := c.RunsAt()
	if at >= c.versions.Newest {
		return nil
	}
	if err := codec.CheckMaySend(request, at); err != nil {
		return &storepb.Result{Code: storepb.Code_UNSUPPORTED, Message: err.Error()}
	}
	return nil
}
