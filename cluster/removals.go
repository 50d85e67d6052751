package cluster

import (
	"context"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
)

// Removals returns the removals applied by this node.
func (n *Node) Removals(ctx context.Context, req *clusterpb.RemovalsRequest) (*clusterpb.RemovalsReply, error) {
	ctx, cancel := context.WithTimeout(ctx, rpc.RemovalsWait)
	defer cancel()
	found, epoch, last := n.fsm.Removals(ctx, req.GetEpoch(), req.GetAfter())
	reply := &clusterpb.RemovalsReply{Epoch: epoch, Last: last}
	for _, r := range found {
		reply.Removals = append(reply.Removals, &clusterpb.Removal{
			Session: uint64(r.Session), Parent: uint64(r.Parent), Name: []byte(r.Name), Ino: uint64(r.Ino),
		})
	}
	return reply, nil
}
