package session

import (
	"lockfs/raftstore/codec"
	"lockfs/raftstore/storepb"
	"lockfs/raftstore/version"
)

// RunsAt is the version of the cluster, as far as was heard.
func (c *Client) RunsAt() uint32 { return max(c.runsAt.Load(), version.Oldest) }

// notYet is the answer to what a later version has added than that at which the cluster runs, as far as was heard: nobody is asked,
// who may not know it. It is nil for all else.
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
