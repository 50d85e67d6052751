package cluster

import (
	"context"
	"fmt"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/identity"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// ProveServer is part of rpc.Node. A node gets the proof of itself from the leader. A removed server gets
// none, because the leader does not accept its calls.
func (n *Node) ProveServer(ctx context.Context, req *clusterpb.ProveServerRequest) (*clusterpb.ProveServerReply, error) {
	caller := rpc.CallerOf(ctx)
	switch {
	case n.certIssuer == nil:
		return nil, refuse(storepb.Code_INVALID, "servers of this cluster have no certificates")
	case len(req.GetNonce()) != len(identity.Nonce{}):
		return nil, refuse(storepb.Code_INVALID, fmt.Sprintf("a nonce has %d bytes", len(identity.Nonce{})))
	case req.GetOfCaller():
		return n.certIssuer.proveServer(ctx, caller, req)
	case !hasCertificate(caller) && !n.certIssuer.proofLimits.allow(rateKey(caller), readClocks().mono):
		return nil, refuse(storepb.Code_TOO_MANY_REQUESTS, "too many proofs are asked for from this address; try again in a moment")
	}
	ctx, cancel := context.WithTimeout(ctx, timeLeft(ctx)*(10-answerTime)/10) // leaves time for the reason in the reply
	defer cancel()
	own := &clusterpb.ProveServerRequest{Nonce: req.GetNonce(), OfCaller: true, TokenId: req.GetTokenId()}
	reply, err := rpc.Ask(rpc.WithCaller(ctx, rpc.Caller{}), n.router, rpc.Node.ProveServer, own)
	if err != nil {
		n.logger.Warn("this server cannot prove to a host that it is one", "to", caller.String(), "error", err)
		return nil, refuse(storepb.Code_NOT_PERMITTED, fmt.Sprintf("the leader does not vouch for server %s: %v", n.dir.Name, err))
	}
	return reply, nil
}

// proveServer signs a proof for the calling server, if this node leads, confirmed by a majority.
func (i *certIssuer) proveServer(ctx context.Context, caller rpc.Caller, req *clusterpb.ProveServerRequest) (*clusterpb.ProveServerReply, error) {
	term, leader := i.leadership.await(ctx)
	if term == 0 {
		return &clusterpb.ProveServerReply{Outcome: clusterpb.Outcome_NOT_LEADER, LeaderAddress: leader}, nil
	}
	if caller.Role == rpc.RoleLocal {
		caller = rpc.Caller{Role: rpc.RoleServer, Host: i.members.dir.Name, Key: i.ownKey()}
	}
	authority, err := i.signer.current()
	if err == nil {
		err = notAnswered(i.readIndex.confirm(ctx))
	}
	if err != nil {
		return &clusterpb.ProveServerReply{Outcome: outcomeOf(err)}, nil
	}
	var refused error
	var tokenHash []byte
	reply := &clusterpb.ProveServerReply{Signer: [][]byte{authority.Certificate().Raw}}
	i.fsm.View(func(ns *namespace.Namespace) {
		refused = ns.Admitted(caller.Host, storepb.Role_SERVER, caller.Key[:])
		tokenHash = ns.TokenSecretHash(req.GetTokenId())
		for _, known := range ns.Authorities() {
			if cross := known.GetCrossCertificate(); len(cross) > 0 {
				reply.Signer = append(reply.Signer, cross)
			}
		}
	})
	if caller.Role != rpc.RoleServer || refused != nil {
		return nil, refuse(storepb.Code_NOT_PERMITTED, fmt.Sprintf("%s is no server of this cluster: %v", caller, refused))
	}
	nonce, server := identity.Nonce(req.GetNonce()), identity.KeyHash(caller.Key)
	if reply.Signature, err = authority.Prove(nonce, server); err != nil {
		return &clusterpb.ProveServerReply{Outcome: outcomeOf(err)}, nil
	}
	if len(tokenHash) == len(identity.SecretHash{}) {
		reply.TokenProof = identity.SecretHash(tokenHash).Prove(nonce, server)
	}
	return reply, nil
}
