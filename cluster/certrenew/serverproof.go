package certrenew

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/identity"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/hostinfo"
	"lockfs/raftstore/storepb"
)

// provenFor is how long a proof of membership counts.
const provenFor = time.Minute

// proofChecker makes servers prove their membership.
type proofChecker struct {
	// standing returns the status of a server's certificate; nil: a proof is required.
	standing func(name identity.Name, key identity.KeyHash) identity.Status
	fresh    func() bool              // the roster behind standing is recent; nil: it is not
	newest   func() *x509.Certificate // newest known CA: it, or a later one, has to sign proofs
	token    *identity.Token          // the server has to know it; nil: none

	mu     sync.Mutex
	proven map[identity.KeyHash]time.Duration // time of each server's proof, on CLOCK_BOOTTIME
	known  *x509.Certificate                  // newest, at the time of later
	later  *x509.Certificate                  // later CA that has signed a proof; nil: none
}

// of is rpc.Security.Vet.
func (c *proofChecker) of(state *tls.ConnectionState) rpc.Vetting {
	name, key, err := identity.Peer(state)
	return &vetting{proofChecker: c, name: name, key: key, err: err, proving: make(chan struct{}, 1)}
}

func (c *proofChecker) isProven(key identity.KeyHash) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, found := c.proven[key]
	return found && hostinfo.BootTime()-at < provenFor
}

// record checks and records a proof. After a proof by a later CA only that one's proofs count.
func (c *proofChecker) record(reply *clusterpb.ProveServerReply, nonce identity.Nonce, server *vetting, asked time.Duration) error {
	told := c.newest()
	c.mu.Lock()
	defer c.mu.Unlock()
	newest := told
	if c.later != nil && c.known.Equal(told) {
		newest = c.later
	}
	proof := identity.Proof{Signature: reply.GetSignature(), Signer: reply.GetSigner()}
	signer, err := proof.Check(newest, nonce, server.key)
	if err != nil {
		return &UnprovenError{Server: server.name.Host, Err: err}
	}
	if c.token != nil {
		if err := checkToken(c.token, nonce, server.key, reply.GetTokenProof()); err != nil {
			return err
		}
	}
	if c.proven == nil {
		c.proven = make(map[identity.KeyHash]time.Duration)
	}
	if !bytes.Equal(signer.RawSubjectPublicKeyInfo, newest.RawSubjectPublicKeyInfo) {
		c.known, c.later = told, signer
		clear(c.proven)
	}
	c.proven[server.key] = asked
	return nil
}

// vetting is rpc.Vetting.
type vetting struct {
	*proofChecker
	name    identity.Name
	key     identity.KeyHash
	err     error         // the certificate is not one of a host
	proving chan struct{} // full while a call waits for a proof
}

// Refused is part of rpc.Vetting.
func (v *vetting) Refused() error {
	if v.err == nil && v.standing != nil && v.standing(v.name, v.key) == identity.Revoked {
		return &identity.Refused{Reason: identity.KeyRevoked, Name: v.name}
	}
	return v.err
}

// isKnown reports whether no proof is needed.
func (v *vetting) isKnown() bool {
	if v.fresh != nil && v.fresh() && v.standing(v.name, v.key) == identity.CertificateOnly {
		return true
	}
	return v.isProven(v.key)
}

// Prove is part of rpc.Vetting.
func (v *vetting) Prove(
	ctx context.Context, ask func(context.Context, *clusterpb.ProveServerRequest) (*clusterpb.ProveServerReply, error),
) error {
	if v.isKnown() {
		return nil
	}
	select {
	case v.proving <- struct{}{}:
		defer func() { <-v.proving }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if v.isKnown() { // another call has asked
		return nil
	}
	nonce, asked := identity.NewNonce(), hostinfo.BootTime()
	request := &clusterpb.ProveServerRequest{Nonce: nonce[:]}
	if v.token != nil {
		request.TokenId = v.token.ID[:]
	}
	reply, err := ask(ctx, request)
	if err == nil && reply.GetOutcome() != clusterpb.Outcome_DONE {
		err = fmt.Errorf("it answers %v", reply.GetOutcome())
	}
	if err != nil {
		return &UnprovenError{Server: v.name.Host, Err: err}
	}
	return v.record(reply, nonce, v, asked)
}

// checkToken refuses a server that does not know the join token. The error is final, because the server
// has proven its membership.
func checkToken(token *identity.Token, nonce identity.Nonce, server identity.KeyHash, proof []byte) error {
	message := ""
	switch {
	case len(proof) == 0:
		message = "the join token is not known: it has expired, was revoked, or is of another cluster; make a new one with `lockfs token create`"
	case !token.Secret.Hash().Proves(nonce, server, proof):
		message = "the secret of the join token is wrong"
	default:
		return nil
	}
	return &rpc.RefusedError{Result: &storepb.Result{Code: storepb.Code_NOT_PERMITTED, Message: message}}
}

// UnprovenError is the error of a call to a server without a proof of membership. The call was not sent.
type UnprovenError struct {
	Server string // by its certificate
	Err    error
}

// Error names the next step.
func (e *UnprovenError) Error() string {
	return fmt.Sprintf("server %s does not prove that it is still a server of the cluster: %v. If it was removed, give other servers; otherwise make sure that "+
		"it reaches a quorum of servers. A host without the address of any server joins with a new token (lockfs token create, lockfs up TOKEN)",
		e.Server, e.Err)
}

// Is reports whether the error is rpc.ErrUnproven.
func (e *UnprovenError) Is(target error) bool { return target == rpc.ErrUnproven }

// Unwrap returns the cause.
func (e *UnprovenError) Unwrap() error { return e.Err }

var errNoRoster = errors.New("the roster is incomplete")

// rosterOf returns the roster and its CAs; nil: there is none.
func rosterOf(said *clusterpb.Roster) (*identity.Roster, [][]byte, error) {
	if said == nil {
		return nil, nil, nil
	}
	roster := &identity.Roster{Version: said.GetVersion()}
	for _, member := range said.GetMembers() {
		key, err := keyHashOf(member.GetKeyHash())
		if err != nil {
			return nil, nil, err
		}
		roster.Members = append(roster.Members, identity.Member{Name: member.GetName(), Key: key})
	}
	for _, revoked := range said.GetRevoked() {
		key, err := keyHashOf(revoked)
		if err != nil {
			return nil, nil, err
		}
		roster.Revoked = append(roster.Revoked, key)
	}
	if roster.Version == 0 || len(roster.Members) == 0 || len(said.GetAuthorities()) == 0 {
		return nil, nil, errNoRoster
	}
	return roster, said.GetAuthorities(), nil
}

func keyHashOf(bytes []byte) (identity.KeyHash, error) {
	if len(bytes) != len(identity.KeyHash{}) {
		return identity.KeyHash{}, errNoRoster
	}
	return identity.KeyHash(bytes), nil
}

// ForCommand returns the security of a command's connections on a host with an identity. Each server has
// to prove its membership.
func ForCommand(credentials *identity.Credentials) *rpc.Security {
	judge := credentials.Verifier(nil)
	return &rpc.Security{
		Client: func(protocol string) *tls.Config { return credentials.ClientConfig(judge, protocol) },
		Vet:    newProofChecker(credentials, judge, nil).of,
	}
}

func newProofChecker(credentials *identity.Credentials, judge identity.Verifier, fresh func() bool) *proofChecker {
	return &proofChecker{
		standing: judge.Status, fresh: fresh,
		newest: func() *x509.Certificate { return credentials.Authorities()[0] },
	}
}
