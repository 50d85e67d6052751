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

// caSigner has the key of the signing CA, which the state holds encrypted. The key is never written or
// logged.
//
// Each server keeps the seal key in a file. A rotation replaces it: the state has a share of the new one
// for each server, readable only there.
type caSigner struct {
	fsm  *raftstore.FSM
	key  func() *identity.Key // of this node's certificate
	path string               // of the seal key file

	mu       sync.Mutex
	seal     identity.SealKey
	unsealed *identity.Authority
}

// sealKey returns the key that other servers need to sign.
func (s *caSigner) sealKey() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seal[:]
}

// current returns the signing CA.
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

// sealKeyFor returns the seal key of a CA: this node's share, or else the key of its file.
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

// addAuthorityOp returns the command that makes a CA the signer, with its encrypted key. The previous CA,
// if any, vouches for it.
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
