package cluster

import (
	"context"
	"fmt"
	"time"

	"lockfs/cluster/rpc"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// hangUpAgainAfter is how long a handshake from before a revocation may take.
const hangUpAgainAfter = 6 * time.Second

// watchRevocations closes the connections of revoked hosts, renews this node's certificate when another
// CA signs, and loads its seal key.
func (n *Node) watchRevocations() {
	var seen ids.Index
	var signing *storepb.AuthorityRecord
	for {
		var last ids.Index
		err := n.fsm.WaitFor(n.ctx, func(ns *namespace.Namespace) bool {
			last = ns.LastRevocation()
			return last != seen || ns.SigningAuthority() != signing
		})
		if err != nil {
			return
		}
		n.fsm.View(func(ns *namespace.Namespace) { signing = ns.SigningAuthority() })
		n.security.keeper.SetSigner(signing.GetAuthority().GetFingerprint())
		if signing != nil {
			if _, err := n.certIssuer.signer.current(); err != nil {
				n.logger.Warn("the key of the authority is not read: this server can issue no certificates", "error", err)
			}
		}
		if last != seen {
			seen = last
			n.hangUpRevoked()
			time.AfterFunc(hangUpAgainAfter, n.hangUpRevoked)
		}
	}
}

// hangUpRevoked closes the connections of revoked hosts.
func (n *Node) hangUpRevoked() {
	n.server.HangUp(n.security.verifier.isRejected)
	n.port.HangUp(n.security.verifier.isRevoked)
}

// revoke revokes a host for good; without a name, the caller. A member has to be removed instead, because
// it has a vote.
func (n *Node) revoke(ctx context.Context, by *storepb.Caller, name string) (*storepb.Result, error) {
	if name == "" {
		name = by.GetHost()
	}
	if id := n.members.find(name); id != "" && n.raft.Server(id) != nil {
		return &storepb.Result{Code: storepb.Code_BUSY, Message: fmt.Sprintf(
			"%q is a member of the cluster: `lockfs member remove %s` removes it, and revokes its certificate too", name, name)}, nil
	}
	return n.store.Propose(ctx, &storepb.Command{Caller: by, Op: revokeHost(name)})
}

func revokeHost(name string) *storepb.Op {
	return &storepb.Op{Op: &storepb.Op_RevokeHost{RevokeHost: &storepb.RevokeHost{Name: name}}}
}

// endRevoked ends the sessions of revoked hosts. It is repeated until all of them have ended.
func (s *sessions) endRevoked() {
	var revoked []namespace.LiveSession
	s.fsm.View(func(ns *namespace.Namespace) {
		for _, session := range s.look { // a moment ago by endExpired
			if ns.Admission(session.Host).GetRevoked() != 0 {
				revoked = append(revoked, session)
			}
		}
	})
	for _, session := range revoked {
		id := session.ID
		op := &storepb.EndSession{Id: uint64(id), IfActive: uint64(session.Active), LastKeepalive: s.deadlines.get(id, readClocks().mono).keepalive}
		if _, err := s.proposer.propose(s.ctx, &storepb.Op{Op: &storepb.Op_EndSession{EndSession: op}}); err != nil {
			s.logger.Warn("a session's end was not recorded", "session", id, "error", err)
			return // the next one would wait as long; all of them are still due
		}
		s.logger.Info("session ended: its host was revoked", "session", id, "host", session.Host)
	}
}

// callerFor returns the caller for the audit trail, with the host of its certificate.
func callerFor(ctx context.Context, said *storepb.Caller) *storepb.Caller {
	caller := rpc.CallerOf(ctx)
	if !hasCertificate(caller) {
		return said
	}
	if said == nil {
		said = new(storepb.Caller)
	}
	said.Host = caller.Host
	return said
}
