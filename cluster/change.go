package cluster

import (
	"context"

	"lockfs/cluster/clusterpb"
	"lockfs/raftstore/storepb"
)

// Change does an operation that an administrator asks for if this node leads.
func (n *Node) Change(ctx context.Context, req *clusterpb.ChangeRequest) (*clusterpb.AdminReply, error) {
	switch req.GetOp().GetOp().(type) {
	case *storepb.Op_SetRule, *storepb.Op_DeleteRule, *storepb.Op_ForgetHost, *storepb.Op_ClearAlarm,
		*storepb.Op_SetQuota, *storepb.Op_DeleteQuota:
	default:
		return &clusterpb.AdminReply{Result: n.malformed("that is not for administrators to do")}, nil
	}
	return n.changes.administer(ctx, func() (*storepb.Result, error) {
		return n.store.Propose(ctx, &storepb.Command{Caller: req.GetCaller(), Op: req.GetOp()})
	}), nil
}
