package cluster

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	"lockfs/cluster/identity"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// rotateOp returns the command that makes a new CA the signer, vouched for by the previous one. It has a
// new seal key, so a server removed earlier cannot read the CA's key in a later backup.
func (i *certIssuer) rotateOp() (*storepb.Op, error) {
	before, err := i.signer.current()
	if err != nil {
		return nil, err
	}
	next, err := identity.NewAuthority(time.Unix(0, i.clock.Now()))
	if err != nil {
		return nil, err
	}
	seal := identity.NewSealKey()
	shares, err := i.shares(seal, next.Fingerprint())
	if err != nil {
		return nil, err
	}
	return addAuthorityOp(next, before, seal, shares)
}

// shares returns a share of a seal key for each admitted server.
func (i *certIssuer) shares(seal identity.SealKey, authority identity.Fingerprint) (shares []*storepb.SealShare, err error) {
	for _, host := range i.servers() {
		certificate, err := x509.ParseCertificate(host.GetCertificate())
		if err != nil {
			return nil, fmt.Errorf("the certificate of %s: %w", host.GetName(), err)
		}
		share, err := seal.ShareWith(certificate, authority)
		if err != nil {
			return nil, fmt.Errorf("the seal key for %s: %w", host.GetName(), err)
		}
		shares = append(shares, &storepb.SealShare{KeyHash: host.GetKeyHash(), Share: share})
	}
	return shares, nil
}

// servers returns the admitted servers.
func (i *certIssuer) servers() (servers []*storepb.Admission) {
	i.fsm.View(func(ns *namespace.Namespace) {
		ns.EachAdmission(func(host *storepb.Admission) bool {
			if host.GetRole() == storepb.Role_SERVER && host.GetRevoked() == 0 {
				servers = append(servers, host)
			}
			return true
		})
	})
	return servers
}

// shareSealKey gives a share of the seal key to servers admitted during or after a rotation.
func (i *certIssuer) shareSealKey() {
	var record *storepb.AuthorityRecord
	i.fsm.View(func(ns *namespace.Namespace) { record = ns.SigningAuthority() })
	if len(record.GetShares()) == 0 { // no rotation yet: servers got the seal key when they joined
		return
	}
	lacks := func(host *storepb.Admission) bool {
		return !slices.ContainsFunc(record.GetShares(), func(share *storepb.SealShare) bool { return bytes.Equal(share.GetKeyHash(), host.GetKeyHash()) })
	}
	if !slices.ContainsFunc(i.servers(), lacks) {
		return
	}
	authority, err := i.signer.current()
	if err != nil {
		i.logger.Warn("the seal key cannot be shared", "error", err)
		return
	}
	shares, err := i.shares(identity.SealKey(i.signer.sealKey()), authority.Fingerprint())
	if err != nil {
		i.logger.Warn("the seal key cannot be shared", "error", err)
		return
	}
	i.proposer.proposeOwn(&storepb.Op{Op: &storepb.Op_AddAuthority{AddAuthority: &storepb.AddAuthority{
		Certificate: record.GetAuthority().GetCertificate(), CrossCertificate: record.GetAuthority().GetCrossCertificate(),
		SealedKey: record.GetSealedKey(), Shares: shares,
	}}})
}

// dropObsoleteCAs drops the CAs behind no host's certificate.
func (i *certIssuer) dropObsoleteCAs() {
	var unneeded [][]byte
	i.fsm.View(func(ns *namespace.Namespace) { unneeded = ns.UnneededAuthorities(i.clock.Now()) })
	for _, fingerprint := range unneeded {
		i.proposer.proposeOwn(&storepb.Op{Op: &storepb.Op_DropAuthority{DropAuthority: &storepb.DropAuthority{Fingerprint: fingerprint}}})
	}
}
