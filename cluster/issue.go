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

// certIssuer is how a leader issues certificates to hosts.
type certIssuer struct {
	fsm          *raftstore.FSM
	leadership   *leadership
	readIndex    *readIndex
	clock        *clock
	proposer     *proposer
	members      *members
	signer       *caSigner
	bootstrapCA  *atomic.Pointer[bootstrapCA] // not nil: this node itself is not recorded yet
	enrollLimits *rateLimits
	proofLimits  *rateLimits // of ProveServer
	rosters      *rosters
	ownKey       func() [32]byte // hash of this node's public key
	validity     time.Duration   // of certificates
	logger       *slog.Logger
}

// enroll returns a certificate to a host with a join token, or with its known key.
func (i *certIssuer) enroll(ctx context.Context, req *clusterpb.EnrollRequest) (*clusterpb.EnrollReply, error) {
	caller := rpc.CallerOf(ctx)
	if caller.Role != rpc.RoleLocal && !i.enrollLimits.allow(rateKey(caller), readClocks().mono) {
		return nil, refuse(storepb.Code_TOO_MANY_REQUESTS, "too many hosts want to join from this address; try again in a moment")
	}
	term, leader := i.leadership.await(ctx)
	if term == 0 {
		if !i.mayKnowLeader(req) {
			leader = ""
		}
		return &clusterpb.EnrollReply{Outcome: clusterpb.Outcome_NOT_LEADER, LeaderAddress: leader}, nil
	}
	reply, err := i.issueTo(ctx, req)
	if err != nil {
		i.logger.Warn("a certificate is not given", "to", req.GetHost(), "error", err)
		return &clusterpb.EnrollReply{Outcome: outcomeOf(err)}, nil
	}
	if code := reply.GetResult().GetCode(); code != storepb.Code_OK {
		i.reportRefusal(caller, req, reply.GetResult())
	}
	return reply, nil
}

// rateKey returns the key for rate limits: the host of a certificate, or else the address, which
// strangers may share.
func rateKey(caller rpc.Caller) string {
	if hasCertificate(caller) {
		return "host " + caller.Host
	}
	return caller.Address.String()
}

func (i *certIssuer) issueTo(ctx context.Context, req *clusterpb.EnrollRequest) (*clusterpb.EnrollReply, error) {
	request, admit, err := readRequest(req)
	if err != nil {
		return &clusterpb.EnrollReply{Result: &storepb.Result{Code: storepb.Code_INVALID, Message: err.Error()}}, nil
	}
	if i.bootstrapCA.Load() != nil {
		return nil, errors.Join(raftstore.ErrNotDone, errNoAuthority)
	}
	authority, err := i.signer.current()
	if err != nil {
		return nil, err
	}
	if err := i.readIndex.confirm(ctx); err != nil {
		return nil, notAnswered(err)
	}
	// a first check before anything is signed or proposed for a stranger; the command checks again
	known, refused := i.checkAdmission(admit)
	if refused != nil {
		return &clusterpb.EnrollReply{Result: refused}, nil
	}
	if known != nil && i.isFresh(known, authority) {
		return i.replyTo(known, admit), nil
	}
	fingerprint := authority.Fingerprint()
	admit.Host.Authority = fingerprint[:]
	if admit.Host.Certificate, admit.Host.NotAfter, err = i.issue(authority, request); err != nil {
		return nil, err
	}
	result, err := i.proposer.propose(ctx, &storepb.Op{Op: &storepb.Op_AdmitHost{AdmitHost: admit}})
	if err != nil || result.GetCode() != storepb.Code_OK {
		return &clusterpb.EnrollReply{Result: result}, err
	}
	if request.Name.Role == identity.Server {
		i.shareSealKey() // before the server can lead
	}
	i.logger.Info("a certificate was given", "to", request.Name, "key", request.KeyHash.String()[:16])
	return i.replyTo(result.GetAdmissions()[0], admit), nil
}

// readRequest returns the certificate request and the command to admit its host.
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

// mayKnowLeader reports whether the caller may learn the leader's address: this node would admit it.
func (i *certIssuer) mayKnowLeader(req *clusterpb.EnrollRequest) bool {
	_, admit, err := readRequest(req)
	if err != nil {
		return false
	}
	_, refused := i.checkAdmission(admit)
	return refused == nil
}

func (i *certIssuer) issue(authority *identity.Authority, request *identity.Request) (der []byte, notAfter int64, err error) {
	if der, err = authority.Issue(request, time.Unix(0, i.clock.Now()), i.validity); err != nil {
		return nil, 0, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, 0, err
	}
	return der, leaf.NotAfter.UnixNano(), nil
}

// checkAdmission returns why a host is not admitted, or its record if it is admitted with this key already.
func (i *certIssuer) checkAdmission(admit *storepb.AdmitHost) (known *storepb.Admission, refused *storepb.Result) {
	i.fsm.View(func(ns *namespace.Namespace) {
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

// isFresh reports whether the last certificate of a host will do for a repeated request: the reply may
// have been lost.
func (i *certIssuer) isFresh(known *storepb.Admission, authority *identity.Authority) bool {
	fingerprint := authority.Fingerprint()
	left := time.Duration(known.GetNotAfter() - i.clock.Now())
	return bytes.Equal(known.GetAuthority(), fingerprint[:]) && left > i.validity*3/4
}

// replyTo returns the reply to an admitted host. A server that proves a token's secret also gets the seal
// key, again after a lost reply.
func (i *certIssuer) replyTo(host *storepb.Admission, admit *storepb.AdmitHost) *clusterpb.EnrollReply {
	reply := &clusterpb.EnrollReply{
		Result: new(storepb.Result), Certificate: host.GetCertificate(), SquashRoot: host.GetSquashRoot(), Servers: i.members.addresses(),
	}
	proven := false
	i.fsm.View(func(ns *namespace.Namespace) {
		reply.Roster = i.rosters.of(ns, time.Unix(0, i.clock.Now()))
		proven = ns.KnowsSecret(admit.GetTokenId(), admit.GetSecretHash())
		for _, authority := range ns.Authorities() {
			reply.Authorities = append(reply.Authorities, authority.GetCertificate())
			if cross := authority.GetCrossCertificate(); len(cross) > 0 {
				reply.Chain = append(reply.Chain, cross)
			}
		}
	})
	if host.GetRole() == storepb.Role_SERVER && proven {
		reply.SealKey = i.signer.sealKey()
	}
	return reply
}

// reportRefusal records an event, once a minute for each address.
func (i *certIssuer) reportRefusal(caller rpc.Caller, req *clusterpb.EnrollRequest, result *storepb.Result) {
	address := caller.Address.String()
	if !i.enrollLimits.mayReport(address, readClocks().mono) {
		return
	}
	i.logger.Warn("a host may not join", "name", req.GetHost(), "from", address, "reason", result.GetMessage())
	i.proposer.proposeOwn(&storepb.Op{Op: &storepb.Op_NoteRefusal{NoteRefusal: &storepb.NoteRefusal{
		Address: address, Name: req.GetHost(), Reason: result.GetMessage(),
	}}})
}
