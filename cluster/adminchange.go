package cluster

import (
	"context"

	"google.golang.org/protobuf/proto"

	"lockfs/cluster/clusterpb"
	"lockfs/raftstore/storepb"
)

// Change does an operation of an administrator if this node leads.
func (n *Node) Change(ctx context.Context, req *clusterpb.ChangeRequest) (*clusterpb.AdminReply, error) {
	by := callerFor(ctx, req.GetCaller())
	switch op := req.GetOp().GetOp().(type) {
	case *storepb.Op_SetRule, *storepb.Op_DeleteRule, *storepb.Op_ForgetHost, *storepb.Op_ClearAlarm,
		*storepb.Op_SetQuota, *storepb.Op_DeleteQuota:
	case *storepb.Op_Unlink:
		if unlink := op.Unlink; !unlink.GetForce() || unlink.GetIfToken() == 0 || unlink.GetPin() != 0 {
			return &clusterpb.AdminReply{Result: n.malformed("a lock is released by force, and by the token that was seen")}, nil
		}
	case *storepb.Op_PutToken, *storepb.Op_DeleteToken, *storepb.Op_RevokeHost, *storepb.Op_AddAuthority:
		return n.changeTrust(ctx, by, req.GetOp()), nil
	default:
		return &clusterpb.AdminReply{Result: n.malformed("that is not for administrators to do")}, nil
	}
	return n.proposer.administer(ctx, func() (*storepb.Result, error) {
		return notBeforeItsVersion(n.store.Propose(ctx, &storepb.Command{Caller: by, Op: req.GetOp()}))
	}), nil
}

// changeTrust changes CAs, join tokens and hosts.
func (n *Node) changeTrust(ctx context.Context, by *storepb.Caller, op *storepb.Op) *clusterpb.AdminReply {
	if n.certIssuer == nil {
		return &clusterpb.AdminReply{Result: &storepb.Result{
			Code:    storepb.Code_UNSUPPORTED,
			Message: "this cluster has no certificates: it runs with --insecure, or on this host only; see `lockfs help security`",
		}}
	}
	return n.proposer.administer(ctx, func() (*storepb.Result, error) {
		if host := op.GetRevokeHost(); host != nil {
			return n.revoke(ctx, by, host.GetName())
		}
		if authority := op.GetAddAuthority(); authority != nil {
			if !proto.Equal(authority, new(storepb.AddAuthority)) {
				return n.malformed("the leader makes the authority"), nil
			}
			var err error
			if op, err = n.certIssuer.rotateOp(); err != nil {
				return nil, err
			}
		}
		result, err := n.store.Propose(ctx, &storepb.Command{Caller: by, Op: op})
		if err == nil && op.GetAddAuthority() != nil {
			n.certIssuer.shareSealKey() // servers may have been admitted meanwhile
		}
		return result, err
	})
}
