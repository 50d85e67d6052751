package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"lockfs/cluster/identity"
	"lockfs/cluster/rpc"
	"lockfs/raftstore"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
	"lockfs/raftstore/trust"
)

var _ identity.Verifier = (*certVerifier)(nil)

// certVerifier verifies certificates by this node's state. A new node without a state accepts servers
// with a certificate of the CAs that came with its own.
type certVerifier struct {
	credentials *identity.Credentials
	now         func() time.Time // cluster time, as far as this node knows it
	fsm         atomic.Pointer[raftstore.FSM]

	mu     sync.Mutex
	parsed map[string]*x509.Certificate // of the state's CAs, by their DER
}

func newCertVerifier(credentials *identity.Credentials, now func() time.Time) *certVerifier {
	return &certVerifier{credentials: credentials, now: now, parsed: make(map[string]*x509.Certificate)}
}

func (v *certVerifier) view(look func(*namespace.Namespace)) {
	if fsm := v.fsm.Load(); fsm != nil {
		fsm.View(look)
	}
}

// Authorities is part of identity.Verifier. A state from before this node's certificate may lack the
// signing CA. Then the CAs that came with the certificate count too.
func (v *certVerifier) Authorities() []*x509.Certificate {
	var known []*storepb.Authority
	var now time.Time
	v.view(func(ns *namespace.Namespace) { known, now = ns.Authorities(), ns.Time() })
	var authorities []*x509.Certificate
	for _, authority := range known {
		if certificate := v.parse(authority.GetCertificate()); certificate != nil {
			authorities = append(authorities, certificate)
		}
	}
	if len(authorities) == 0 || v.credentials.Issued().After(now) {
		authorities = append(authorities, v.credentials.Authorities()...)
	}
	return authorities
}

// parse returns nil for an invalid certificate.
func (v *certVerifier) parse(der []byte) *x509.Certificate {
	v.mu.Lock()
	defer v.mu.Unlock()
	certificate, known := v.parsed[string(der)]
	if !known {
		certificate, _ = x509.ParseCertificate(der) // the leader checked it before
		v.parsed[string(der)] = certificate
	}
	return certificate
}

// Now is part of identity.Verifier.
func (v *certVerifier) Now() time.Time {
	now := v.now()
	if issued := v.credentials.Issued(); issued.After(now) {
		return issued
	}
	return now
}

// Status is part of identity.Verifier.
func (v *certVerifier) Status(name identity.Name, key identity.KeyHash) identity.Status {
	standing := identity.Unknown
	begun := false
	v.view(func(ns *namespace.Namespace) {
		begun = len(ns.Authorities()) > 0
		switch err := ns.Admitted(name.Host, roleOf(name.Role), key[:]); {
		case err == nil:
			standing = identity.Admitted
		case errors.Is(err, trust.ErrRevoked):
			standing = identity.Revoked
		}
	})
	if !begun && name.Role == identity.Server {
		return identity.CertificateOnly
	}
	return standing
}

func roleOf(role identity.Role) storepb.Role {
	if role == identity.Server {
		return storepb.Role_SERVER
	}
	return storepb.Role_CLIENT
}

// caller returns the host of a connection's certificate, verified in the handshake.
func (v *certVerifier) caller(state *tls.ConnectionState) (rpc.Caller, error) {
	name, key, err := identity.Peer(state)
	if err != nil {
		return rpc.Caller{}, err
	}
	caller := rpc.Caller{Role: rpc.RoleClient, Host: name.Host, Key: key}
	if name.Role == identity.Server {
		caller.Role = rpc.RoleServer
	}
	return caller, nil
}

// isRejected reports whether the host of a connection would not be accepted now.
func (v *certVerifier) isRejected(caller rpc.Caller) bool {
	standing, has := v.statusOf(caller)
	return has && standing != identity.Admitted && standing != identity.CertificateOnly
}

// isRevoked is for raft's connections, whose servers may not be known here yet.
func (v *certVerifier) isRevoked(caller rpc.Caller) bool {
	standing, has := v.statusOf(caller)
	return has && standing == identity.Revoked
}

// statusOf returns false for a caller without a certificate.
func (v *certVerifier) statusOf(caller rpc.Caller) (identity.Status, bool) {
	switch caller.Role {
	case rpc.RoleServer:
		return v.Status(identity.Name{Role: identity.Server, Host: caller.Host}, caller.Key), true
	case rpc.RoleClient:
		return v.Status(identity.Name{Role: identity.Client, Host: caller.Host}, caller.Key), true
	}
	return 0, false
}
