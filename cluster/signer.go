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

// caSigner has the key of the authority that signs, which the state holds sealed. It is never written or logged.
//
// The seal key is in a file of each server. A rotation replaces it: the state has a share of the new one for each server, which only that one
// can read.
type caSigner struct {
	fsm  *raftstore.FSM
	key  func() *identity.Key // of this node's certificate
	path string               // of the file with the seal key

	mu       sync.Mutex
	seal     identity.SealKey
	unsealed *identity.Authority
}

// sealKey is what other servers need to sign.
func (s *caSigner) sealKey() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seal[:]
}

// current is the authority that signs now.
func (s *caSigner) current() (*identity.Authority, error) {
	var record *storepb.AuthorityRecord
	s.fsm.View(func(ns *namespace.Namespace) { record = ns.SigningAuthority() })
	if record == nil {
		return nil, errors.Join(raftstore.ErrNotDone, errNoAuthority)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	der := record.GetAuthority().GetCertificate()
	if s.unsealed != nil && bytes.Equal(s.unsealed.Certificate().Raw, der) {
		return s.unsealed, nil
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("the certificate of the authority: %w", err)
	}
	seal, err := s.sealKeyFor(record, identity.FingerprintOf(certificate))
	if err != nil {
		return nil, err
	}
	authority, err := identity.Decrypt(certificate, record.GetSealedKey(), seal)
	if err != nil {
		return nil, err
	}
	if seal != s.seal {
		if err := seal.Save(s.path); err != nil {
			return nil, fmt.Errorf("the new seal key is not kept: %w", err)
		}
		s.seal = seal
	}
	s.unsealed = authority
	return authority, nil
}

// sealKeyFor is the seal key of an authority: the share for this node, or the key of its file if there is none.
func (s *caSigner) sealKeyFor(record *storepb.AuthorityRecord, authority identity.Fingerprint) (identity.SealKey, error) {
	key := s.key()
	hash := key.Hash()
	for _, share := range record.GetShares() {
		if bytes.Equal(share.GetKeyHash(), hash[:]) {
			return key.OpenShare(share.GetShare(), authority)
		}
	}
	return s.seal, nil
}

// addAuthorityOp is the command that makes an authority the one that signs, with its key sealed: vouched for by the one before, if there is one.
func addAuthorityOp(next, before *identity.Authority, seal identity.SealKey, shares []*storepb.SealShare) (*storepb.Op, error) {
	op := &storepb.AddAuthority{Certificate: next.Certificate().Raw, Shares: shares}
	var err error
	if op.SealedKey, err = next.Encrypt(seal); err != nil {
		return nil, err
	}
	if before != nil {
		if op.CrossCertificate, err = before.CrossSign(next.Certificate()); err != nil {
			return nil, err
		}
	}
	return &storepb.Op{Op: &storepb.Op_AddAuthority{AddAuthority: op}}, nil
}
