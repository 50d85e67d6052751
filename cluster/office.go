package cluster

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"

	"lockfs/cluster/identity"
	"lockfs/raftstore"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

var errNoAuthority = errors.New("the cluster has no authority yet")

// office has the key of the authority that signs, which the state holds sealed. It is never written or logged.
type office struct {
	fsm  *raftstore.FSM
	seal identity.SealKey

	mu       sync.Mutex
	unsealed *identity.Authority
}

// sealKey is what other servers need to sign.
func (o *office) sealKey() []byte { return o.seal[:] }

// signing is the authority that signs now.
func (o *office) signing() (*identity.Authority, error) {
	var record *storepb.AuthorityRecord
	o.fsm.View(func(ns *namespace.Namespace) { record = ns.SigningAuthority() })
	if record == nil {
		return nil, errors.Join(raftstore.ErrNotDone, errNoAuthority)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	der := record.GetAuthority().GetCertificate()
	if o.unsealed != nil && bytes.Equal(o.unsealed.Certificate().Raw, der) {
		return o.unsealed, nil
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("the certificate of the authority: %w", err)
	}
	if o.unsealed, err = identity.Unseal(certificate, record.GetSealedKey(), o.seal); err != nil {
		return nil, err
	}
	return o.unsealed, nil
}

// add is the command that makes an authority the one that signs: vouched for by the one before, if there is one.
func (o *office) add(next, before *identity.Authority) (*storepb.Op, error) {
	op := &storepb.AddAuthority{Certificate: next.Certificate().Raw}
	var err error
	if op.SealedKey, err = next.Seal(o.seal); err != nil {
		return nil, err
	}
	if before != nil {
		if op.CrossCertificate, err = before.CrossSign(next.Certificate()); err != nil {
			return nil, err
		}
	}
	return &storepb.Op{Op: &storepb.Op_AddAuthority{AddAuthority: op}}, nil
}
