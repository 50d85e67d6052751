package identity

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
)

// ServerConfig is for a server's side of connections. Peers need no certificate for [ProtocolJoin]. For all
// other protocols the handshake verifies the peer and may fail with a [*Refused]. Each handshake uses the
// current credentials, and calls the judge.
//
// [ProtocolRaft] accepts only servers. There Unknown is enough: a server with an old state has to get entries
// from leaders unknown to it. Revoked is refused.
func (c *Credentials) ServerConfig(judge Verifier, protocols ...string) *tls.Config {
	configs := make(map[string]*tls.Config)
	for _, protocol := range protocols {
		configs[protocol] = c.serverConfig(judge, protocol)
	}
	base := baseConfig(protocols...)
	base.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		for _, protocol := range protocols {
			if slices.Contains(hello.SupportedProtos, protocol) {
				return configs[protocol], nil
			}
		}
		return nil, fmt.Errorf("%w: the client offers %q", errProtocol, hello.SupportedProtos)
	}
	return base
}

var errProtocol = errors.New("unknown protocol")

// baseConfig has the common settings. Tickets are off, so each connection is verified anew.
func baseConfig(protocols ...string) *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		NextProtos:             protocols,
		SessionTicketsDisabled: true,
	}
}

func (c *Credentials) serverConfig(judge Verifier, protocol string) *tls.Config {
	config := baseConfig(protocol)
	config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		if protocol == ProtocolJoin {
			return c.current.Load().withRoots, nil
		}
		return c.current.Load().presented, nil
	}
	if protocol != ProtocolJoin {
		config.ClientAuth = tls.RequestClientCert // VerifyConnection refuses a missing one, with a reason
		config.VerifyConnection = func(state tls.ConnectionState) error {
			needed := anyHost
			if protocol == ProtocolRaft {
				needed = anyServer
			}
			return verifyPeer(judge, &state, needed)
		}
	}
	return config
}

// ClientConfig is for the dialing side. The handshake fails with a [*Refused] for a server of another
// cluster. It presents the present certificate, except with [ProtocolJoin].
func (c *Credentials) ClientConfig(judge Verifier, protocol string) *tls.Config {
	config := clientConfig(judge, protocol)
	if protocol != ProtocolJoin {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return c.current.Load().presented, nil
		}
	}
	return config
}

func clientConfig(judge Verifier, protocol string) *tls.Config {
	config := baseConfig(protocol)
	config.ServerName = ServerName
	config.InsecureSkipVerify = true // verifyPeer verifies, with the cluster's time
	config.VerifyConnection = func(state tls.ConnectionState) error {
		// A server without these protocols would be another service with the same certificate.
		if state.NegotiatedProtocol != protocol {
			return fmt.Errorf("%w: it was asked for %q", errProtocol, protocol)
		}
		return verifyPeer(judge, &state, serverDialed)
	}
	return config
}

// Peer returns the verified peer of a connection.
func Peer(state *tls.ConnectionState) (Name, KeyHash, error) {
	if len(state.PeerCertificates) == 0 {
		return Name{}, KeyHash{}, &Refused{Reason: NoCertificate}
	}
	leaf := state.PeerCertificates[0]
	name, err := NameOf(leaf)
	if err != nil {
		return Name{}, KeyHash{}, &Refused{Reason: BadCertificate, Err: err}
	}
	return name, KeyHashOf(leaf), nil
}

// ALPN protocols.
const (
	ProtocolRaft = "lockfs-raft" // between servers
	ProtocolRPC  = "lockfs-rpc"  // calls of hosts with a certificate
	ProtocolJoin = "lockfs-join" // of hosts without a valid certificate
)
