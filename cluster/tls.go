package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"lockfs/cluster/certrenew"
	"lockfs/cluster/consensus"
	"lockfs/cluster/identity"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// security has this node's certificates and the verifier of others.
type security struct {
	credentials *identity.Credentials
	verifier    *certVerifier
	keeper      *certrenew.Renewer
	seal        identity.SealKey
	bootstrapCA atomic.Pointer[bootstrapCA] // nil: the state has the CA
	connections *rpc.Security
}

// Enroll gets this host a server identity with a join token, before [Open]. If the data directory has an
// identity, it does nothing. It retries until ctx ends.
func Enroll(ctx context.Context, cfg Config, token *identity.Token) error {
	dir := filepath.Join(cfg.DataDir, consensus.CredentialsDir)
	if _, err := identity.Load(dir); !errors.Is(err, identity.ErrNone) {
		return err
	}
	if token.Role != identity.Server {
		return fmt.Errorf("the token is for a %s: a server needs one of `lockfs token create --role server`", token.Role)
	}
	if consensus.IsBootstrapping(cfg.DataDir) {
		return fmt.Errorf("data directory %s is incomplete: `lockfs server init` was interrupted there; run it again, or use an empty directory", cfg.DataDir)
	}
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	_, err := certrenew.Join(ctx, token, cfg.Name, dir, func(seal identity.SealKey) error {
		return seal.Save(filepath.Join(cfg.DataDir, consensus.SealKeyFile))
	})
	return err
}

// openSecurity loads the identity of the data directory, or makes the first one of a cluster.
func (n *Node) openSecurity() error {
	dir := filepath.Join(n.dir.Path, consensus.CredentialsDir)
	credentials, err := identity.Load(dir)
	none := errors.Is(err, identity.ErrNone)
	switch {
	case n.cfg.Address == "":
		return nil
	case err != nil && !none:
		return err
	case n.cfg.Insecure && !none:
		return fmt.Errorf("data directory %s is of a cluster with certificates: start this node without --insecure", n.dir.Path)
	case n.cfg.Insecure:
		return nil
	case none && n.dir.Joined:
		return fmt.Errorf("data directory %s is of a cluster without certificates: start this node with --insecure, as the others", n.dir.Path)
	case none && !n.cfg.Bootstrap:
		return n.dir.RequireCluster(false)
	}
	s := new(security)
	if s.seal, err = n.sealKey(none); err != nil {
		return err
	}
	begun, err := loadBootstrapCA(n.dir.Path, s.seal)
	if err != nil {
		return err
	}
	if none {
		if credentials, begun, err = n.identifyFirst(s.seal, begun, dir); err != nil {
			return err
		}
	}
	s.bootstrapCA.Store(begun)
	own := identity.Name{Role: identity.Server, Host: n.dir.Name}
	switch {
	case credentials.Name() != own:
		return fmt.Errorf("%s is the identity of %s, and this node is %s: give the node that name, or enroll it anew", dir, credentials.Name(), own)
	}
	n.secure(s, credentials)
	return nil
}

// sealKey loads the seal key of the data directory. The first node of a cluster creates it.
func (n *Node) sealKey(begins bool) (identity.SealKey, error) {
	path := filepath.Join(n.dir.Path, consensus.SealKeyFile)
	seal, err := identity.LoadSealKey(path)
	if errors.Is(err, fs.ErrNotExist) && begins {
		seal = identity.NewSealKey()
		err = seal.Save(path)
	}
	if err != nil {
		return identity.SealKey{}, fmt.Errorf("the key that the authority's is sealed with: %w", err)
	}
	return seal, nil
}

// identifyFirst makes the identity of the first server, and its CA if there is none yet.
func (n *Node) identifyFirst(seal identity.SealKey, begun *bootstrapCA, dir string) (*identity.Credentials, *bootstrapCA, error) {
	now := time.Unix(0, readClocks().wall)
	name, err := identity.ParseName(identity.Server, n.dir.Name)
	if err == nil && begun == nil {
		begun, err = newBootstrapCA(n.dir.Path, seal, now)
	}
	if err != nil {
		return nil, nil, err
	}
	credentials, err := begun.identify(dir, name, n.cfg.Advertise, now, n.cfg.certificateValidity())
	return credentials, begun, err
}

// secure secures the node's connections.
func (n *Node) secure(s *security, credentials *identity.Credentials) {
	s.credentials = credentials
	s.verifier = newCertVerifier(credentials, n.clusterTime)
	s.keeper = certrenew.ForServer(credentials, s.verifier, n, n.otherServers, n.certificateRefused, n.logger)
	s.connections = s.keeper.Security()
	s.connections.Server = credentials.ServerConfig(s.verifier, rpc.ProtocolRPC, rpc.ProtocolRaft, rpc.ProtocolJoin)
	s.connections.Caller, s.connections.Network = s.verifier.caller, n.cfg.Network
	n.security = s
	if !n.dir.Joined && !n.cfg.Bootstrap {
		n.cfg.Join = credentials.Servers()
	}
}

// connections returns the security of this node's connections; nil: plain.
func (n *Node) connections() *rpc.Security {
	switch {
	case n.security != nil:
		return n.security.connections
	case n.cfg.Network != nil:
		return &rpc.Security{Network: n.cfg.Network}
	}
	return nil
}

// clusterTime returns cluster time as far as this node knows it: on a follower, the time of the last
// command.
func (n *Node) clusterTime() (now time.Time) {
	if n.leadership.term() != 0 {
		return time.Unix(0, n.clock.Now())
	}
	n.security.verifier.view(func(ns *namespace.Namespace) { now = ns.Time() })
	return now
}

// otherServers returns the servers to ask for a new certificate.
func (n *Node) otherServers() []string {
	if servers := n.members.addresses(); len(servers) > 0 {
		return servers
	}
	servers := n.security.credentials.Servers() // at the time of its enrolment
	for _, server := range n.raft.Servers() {
		servers = append(servers, string(server.Address))
	}
	return servers
}

// certificateRefused ends a node that was removed from the cluster.
func (n *Node) certificateRefused(err error) {
	refused := new(rpc.RefusedError)
	if errors.As(err, &refused) && refused.Result.GetCode() == storepb.Code_NOT_PERMITTED {
		n.fail(fmt.Errorf("%w (%w)", errRemoved, err))
	}
}
