package cluster

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/identity"
	"lockfs/cluster/rpc"
	"lockfs/raftstore"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// enrollment is how a leader gives hosts their certificates.
type enrollment struct {
	fsm        *raftstore.FSM
	leadership *leadership
	readIndex  *readIndex
	clock      *clock
	changes    *changes
	members    *members
	office     *office
	founding   *atomic.Pointer[founding] // not nil: this node itself is not recorded yet
	attempts   *attempts
	proofs     *attempts // the same of ProveServer
	rosters    *rosters
	ownKey     func() [32]byte // hash of the key of this node's certificate
	validity   time.Duration   // of certificates
	logger     *slog.Logger
}

// enroll answers a certificate to who comes with a token or with the key that his host is known by.
func (e *enrollment) enroll(ctx context.Context, req *clusterpb.EnrollRequest) (*clusterpb.EnrollReply, error) {
	caller := rpc.CallerOf(ctx)
	if caller.Role != rpc.RoleLocal && !e.attempts.allowed(whose(caller), readClocks().mono) {
		return nil, refuse(storepb.Code_TOO_MANY_REQUESTS, "too many hosts want to join from this address; try again in a moment")
	}
	term, leader := e.leadership.await(ctx)
	if term == 0 {
		if !e.mayHear(req) {
			leader = ""
		}
		return &clusterpb.EnrollReply{Outcome: clusterpb.Outcome_NOT_LEADER, LeaderAddress: leader}, nil
	}
	reply, err := e.answer(ctx, req)
	if err != nil {
		e.logger.Warn("a certificate is not given", "to", req.GetHost(), "error", err)
		return &clusterpb.EnrollReply{Outcome: outcomeOf(err)}, nil
	}
	if code := reply.GetResult().GetCode(); code != storepb.Code_OK {
		e.noteRefusal(caller, req, reply.GetResult())
	}
	return reply, nil
}

// whose attempts those of a caller are: of a host that is in, wherever it calls from, where there may be strangers too.
func whose(caller rpc.Caller) string {
	if hasCertificate(caller) {
		return "host " + caller.Host
	}
	return caller.Address.String()
}

func (e *enrollment) answer(ctx context.Context, req *clusterpb.EnrollRequest) (*clusterpb.EnrollReply, error) {
	request, admit, err := readRequest(req)
	if err != nil {
		return &clusterpb.EnrollReply{Result: &storepb.Result{Code: storepb.Code_INVALID, Message: err.Error()}}, nil
	}
	if e.founding.Load() != nil {
		return nil, errors.Join(raftstore.ErrNotDone, errNoAuthority)
	}
	authority, err := e.office.signing()
	if err != nil {
		return nil, err
	}
	if err := e.readIndex.confirm(ctx); err != nil {
		return nil, notAnswered(err)
	}
	// It is looked at in the state before anything is signed or proposed for a stranger; the command judges it again.
	known, refused := e.look(admit)
	if refused != nil {
		return &clusterpb.EnrollReply{Result: refused}, nil
	}
	if known != nil && e.isFresh(known, authority) {
		return e.grant(known, admit), nil
	}
	fingerprint := authority.Fingerprint()
	admit.Host.Authority = fingerprint[:]
	if admit.Host.Certificate, admit.Host.NotAfter, err = e.issue(authority, request); err != nil {
		return nil, err
	}
	result, err := e.changes.propose(ctx, &storepb.Op{Op: &storepb.Op_AdmitHost{AdmitHost: admit}})
	if err != nil || result.GetCode() != storepb.Code_OK {
		return &clusterpb.EnrollReply{Result: result}, err
	}
	if request.Name.Role == identity.Server {
		e.shareSeal() // before the server can lead
	}
	e.logger.Info("a certificate was given", "to", request.Name, "key", request.KeyHash.String()[:16])
	return e.grant(result.GetAdmissions()[0], admit), nil
}

// readRequest answers who wants to come in, and with what.
func readRequest(req *clusterpb.EnrollRequest) (*identity.Request, *storepb.AdmitHost, error) {
	request, err := identity.ParseRequest(req.GetRequest())
	if err == nil && request.Name.Host != req.GetHost() {
		err = fmt.Errorf("the request is for %s, not for %q", request.Name, req.GetHost())
	}
	if err != nil {
		return nil, nil, err
	}
	admit := &storepb.AdmitHost{TokenId: req.GetTokenId(), Host: &storepb.Admission{
		Name: request.Name.Host, Role: roleOf(request.Name.Role), KeyHash: request.KeyHash[:],
	}}
	if len(req.GetTokenId()) > 0 {
		hash, err := identity.CheckTokenSignature(req.GetRequest(), req.GetTokenKey(), req.GetTokenSignature())
		if err != nil {
			return nil, nil, err
		}
		admit.SecretHash = hash[:]
	}
	return request, admit, nil
}

// mayHear tells whether somebody may know who leads: one who would be let in, as far as this node knows. Others have to find out.
func (e *enrollment) mayHear(req *clusterpb.EnrollRequest) bool {
	_, admit, err := readRequest(req)
	if err != nil {
		return false
	}
	_, refused := e.look(admit)
	return refused == nil
}

func (e *enrollment) issue(authority *identity.Authority, request *identity.Request) (der []byte, notAfter int64, err error) {
	if der, err = authority.Issue(request, time.Unix(0, e.clock.Now()), e.validity); err != nil {
		return nil, 0, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, 0, err
	}
	return der, leaf.NotAfter.UnixNano(), nil
}

// look answers why a host is not let in, or what is known of it if it is in with that key already.
func (e *enrollment) look(admit *storepb.AdmitHost) (known *storepb.Admission, refused *storepb.Result) {
	e.fsm.View(func(ns *namespace.Namespace) {
		if refused = ns.MayAdmit(admit); refused != nil {
			return
		}
		host := admit.GetHost()
		if ns.Admitted(host.GetName(), host.GetRole(), host.GetKeyHash()) == nil {
			known = ns.Admission(host.GetName())
		}
	})
	return known, refused
}

// isFresh tells whether the certificate that a host has will do for who asks again: the answer may have been lost.
func (e *enrollment) isFresh(known *storepb.Admission, authority *identity.Authority) bool {
	fingerprint := authority.Fingerprint()
	left := time.Duration(known.GetNotAfter() - e.clock.Now())
	return bytes.Equal(known.GetAuthority(), fingerprint[:]) && left > e.validity*3/4
}

// grant is the answer to a host that is in. The seal key is for a server that shows the secret of a token, also when it comes
// again because the answer was lost.
func (e *enrollment) grant(host *storepb.Admission, admit *storepb.AdmitHost) *clusterpb.EnrollReply {
	reply := &clusterpb.EnrollReply{
		Result: new(storepb.Result), Certificate: host.GetCertificate(), SquashRoot: host.GetSquashRoot(), Servers: e.members.addresses(),
	}
	proven := false
	e.fsm.View(func(ns *namespace.Namespace) {
		reply.Roster = e.rosters.of(ns, time.Unix(0, e.clock.Now()))
		proven = ns.KnowsSecret(admit.GetTokenId(), admit.GetSecretHash())
		for _, authority := range ns.Authorities() {
			reply.Authorities = append(reply.Authorities, authority.GetCertificate())
			if cross := authority.GetCrossCertificate(); len(cross) > 0 {
				reply.Chain = append(reply.Chain, cross)
			}
		}
	})
	if host.GetRole() == storepb.Role_SERVER && proven {
		reply.SealKey = e.office.sealKey()
	}
	return reply
}

// noteRefusal has an event tell of it, once a minute for each address.
func (e *enrollment) noteRefusal(caller rpc.Caller, req *clusterpb.EnrollRequest, result *storepb.Result) {
	address := caller.Address.String()
	if !e.attempts.newRefusal(address, readClocks().mono) {
		return
	}
	e.logger.Warn("a host may not join", "name", req.GetHost(), "from", address, "reason", result.GetMessage())
	e.changes.proposeOwn(&storepb.Op{Op: &storepb.Op_NoteRefusal{NoteRefusal: &storepb.NoteRefusal{
		Address: address, Name: req.GetHost(), Reason: result.GetMessage(),
	}}})
}
