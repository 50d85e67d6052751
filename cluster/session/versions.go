package session

import (
	"context"
	"fmt"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/codec"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
	"lockfs/raftstore/version"
)

// fitTimeout is how long the nodes are waited for to say at which version the cluster runs.
const fitTimeout = time.Second

// checkFits answers codec.ErrNewer or codec.ErrOlder if the first of the nodes that answers runs a cluster of a version that the
// program does not know. That comes before anything of an earlier process is settled or taken over. It is nobody's last word:
// the node may be behind, and nobody may answer; the session is refused then.
func checkFits(ctx context.Context, nodes []rpc.Node, known version.Range) error {
	ctx, cancel := context.WithTimeout(ctx, fitTimeout)
	defer cancel()
	answers := make(chan *clusterpb.StatusReply, len(nodes))
	for _, node := range nodes {
		go func() {
			status, err := node.Status(ctx, &clusterpb.StatusRequest{})
			if err != nil {
				status = nil
			}
			answers <- status
		}()
	}
	for range nodes {
		status := <-answers
		if status.GetClusterVersion() == 0 {
			continue
		}
		if err := namespace.CheckVersion(status.GetClusterVersion(), known); err != nil {
			theirs := version.Range{Oldest: status.GetOldestVersion(), Newest: status.GetNewestVersion()}
			return fmt.Errorf("%w (the server %s knows version %s)", err, status.GetName(), theirs)
		}
		return nil
	}
	return nil
}

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
