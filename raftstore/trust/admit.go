package trust

import (
	"bytes"
	"fmt"

	"google.golang.org/protobuf/proto"

	"lockfs/raftstore/storepb"
)

// Admit admits a host, or records the new certificate of an admitted one. joined: it was admitted, by a token
// or as the founder.
func (t *Table) Admit(op *storepb.AdmitHost) (result *storepb.Result, joined bool) {
	host := op.GetHost()
	if wrong := checkHost(host); wrong != "" {
		return refuse(storepb.Code_INVALID, wrong), false
	}
	if t.authority(host.GetAuthority()) == nil {
		return refuse(storepb.Code_INVALID, "the certificate is of an authority that is not trusted"), false
	}
	known, _ := t.hosts.Get(host.GetName())
	by, refused := t.check(op, known)
	switch {
	case refused != nil:
		return refused, false
	case by == nil:
		return t.renew(known, host), false
	}
	result, joined = t.admit(op, by, known)
	if joined && !op.GetFounding() {
		t.redeem(by)
	}
	return result, joined
}

// MayAdmit returns the reason why Admit would refuse a host at the time of the last command, whatever its
// certificate; nil: none. The certificate may be missing.
func (t *Table) MayAdmit(op *storepb.AdmitHost) *storepb.Result {
	known, _ := t.hosts.Get(op.GetHost().GetName())
	_, refused := t.check(op, known)
	return refused
}

// KnowsSecret reports whether a token with this secret exists. The token may be used up.
func (t *Table) KnowsSecret(tokenID, secretHash []byte) bool {
	record, found := t.tokens.Get(string(tokenID))
	return found && matches(record, secretHash)
}

// SecretHash returns the stored hash of a token's secret; nil: there is no such token.
func (t *Table) SecretHash(tokenID []byte) []byte {
	record, _ := t.tokens.Get(string(tokenID))
	return record.GetSecretHash()
}

// check returns the token that admits a host, an empty one for the founder, and nil for an admitted host
// that renews its certificate. Otherwise it returns the refusal.
func (t *Table) check(op *storepb.AdmitHost, known *storepb.Admission) (by *storepb.TokenRecord, refused *storepb.Result) {
	host := op.GetHost()
	_, revoked := t.revoked.Get(string(host.GetKeyHash()))
	switch {
	case revoked:
		return nil, refuse(storepb.Code_NOT_PERMITTED, "this key was revoked; make a new one, and come with a new join token")
	case isLive(known) && bytes.Equal(known.GetKeyHash(), host.GetKeyHash()) && isRetry(op, known):
		return nil, nil
	case op.GetFounding() && host.GetRole() != storepb.Role_SERVER:
		return nil, refuse(storepb.Code_INVALID, "only a server comes in as the founder")
	case op.GetFounding():
		return new(storepb.TokenRecord), nil
	case len(op.GetTokenId()) == 0:
		return nil, refuse(storepb.Code_NOT_PERMITTED, reason(known, host))
	}
	return t.mayJoin(op, known)
}

// isRetry reports whether a host with its known key only renews its certificate, or repeats a request with
// a lost reply.
func isRetry(op *storepb.AdmitHost, known *storepb.Admission) bool {
	return op.GetHost().GetRole() == known.GetRole() &&
		(op.GetFounding() || len(op.GetTokenId()) == 0 || bytes.Equal(op.GetTokenId(), known.GetTokenId()))
}

func (t *Table) renew(known, host *storepb.Admission) *storepb.Result {
	renewed, _ := proto.Clone(known).(*storepb.Admission)
	renewed.Certificate, renewed.Authority, renewed.NotAfter = host.GetCertificate(), host.GetAuthority(), host.GetNotAfter()
	t.hosts.Set(renewed.GetName(), renewed)
	return answerHost(renewed)
}

// reason returns the reason to refuse a host without a token. A caller without the key of a host learns
// nothing about it, not even the name exists.
func reason(known, host *storepb.Admission) string {
	name := host.GetName()
	if isLive(known) && bytes.Equal(known.GetKeyHash(), host.GetKeyHash()) {
		return fmt.Sprintf("the host %q is known as a %s; come with a join token", name, roleName(known.GetRole()))
	}
	return fmt.Sprintf("no host %q is known by this key; come with a join token", name)
}

func (t *Table) mayJoin(op *storepb.AdmitHost, known *storepb.Admission) (*storepb.TokenRecord, *storepb.Result) {
	record, refused := t.redeemable(op)
	if refused != nil {
		return nil, refused
	}
	host := op.GetHost()
	isAnother := isLive(known) && !bytes.Equal(known.GetKeyHash(), host.GetKeyHash())
	if isAnother && record.GetToken().GetHost() != host.GetName() {
		return nil, refuse(storepb.Code_BUSY, fmt.Sprintf("there is a host %q already, with another key: give this one another name, or revoke the other"+
			" with `lockfs host revoke`, or, if it is the same, come with a token of `lockfs token create --host`", host.GetName()))
	}
	return record, nil
}

func (t *Table) admit(op *storepb.AdmitHost, by *storepb.TokenRecord, known *storepb.Admission) (*storepb.Result, bool) {
	if known == nil && t.hosts.Len() >= MaxHosts && !t.dropRevokedHost() {
		return refuse(storepb.Code_NO_SPACE, "there are too many hosts; revoke those that are gone with `lockfs host revoke`"), false
	}
	host := op.GetHost()
	admission := &storepb.Admission{
		Name: host.GetName(), Role: host.GetRole(), KeyHash: host.GetKeyHash(), Certificate: host.GetCertificate(),
		Authority: host.GetAuthority(), NotAfter: host.GetNotAfter(),
		SquashRoot: by.GetToken().GetSquashRoot(), TokenId: by.GetToken().GetId(), Admitted: t.now,
	}
	t.hosts.Set(admission.GetName(), admission)
	if known != nil {
		t.lastRevocation = t.index
	}
	if t.isLost(known) {
		t.revokeKey(string(known.GetKeyHash()), t.index)
	}
	return answerHost(admission), true
}

// isLost reports whether a replaced key must be revoked, because no host has it any more. Servers accept
// unknown keys of each other, so keys of servers have to be revoked. For a client's key it is enough no host
// has it.
func (t *Table) isLost(known *storepb.Admission) bool {
	if !isLive(known) || known.GetRole() != storepb.Role_SERVER {
		return false
	}
	lost := true
	t.hosts.Scan(func(_ string, other *storepb.Admission) bool {
		lost = !isLive(other) || !bytes.Equal(other.GetKeyHash(), known.GetKeyHash())
		return lost
	})
	return lost
}

// dropRevokedHost makes room: it deletes the host with the oldest revocation, if there is one. Its key stays
// revoked.
func (t *Table) dropRevokedHost() bool {
	var oldest *storepb.Admission
	t.hosts.Scan(func(_ string, host *storepb.Admission) bool {
		if !isLive(host) && (oldest == nil || host.GetRevoked() < oldest.GetRevoked()) {
			oldest = host
		}
		return true
	})
	if oldest != nil {
		t.hosts.Delete(oldest.GetName())
	}
	return oldest != nil
}
