package certrenew

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/identity"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/storepb"
)

// Joined is the result of a join.
type Joined struct {
	Credentials *identity.Credentials
	SquashRoot  bool // root of this host is squashed
}

// Join makes this host join with a token, under a name, and stores its identity in a directory. A server
// gets the request only after a proof that the leader accepts it as a server, and that it knows the
// token. The secret of the token never leaves the host (identity.Secret.Sign). Join retries until ctx
// ends. A repetition after a crash or a lost reply has the same result.
//
// keep gets the seal key of a server before there is an identity; it may be nil for a client. The error
// is a *rpc.RefusedError if the cluster refuses.
func Join(ctx context.Context, token *identity.Token, host, dir string, keep func(identity.SealKey) error) (*Joined, error) {
	name, err := identity.ParseName(token.Role, host)
	if err != nil {
		return nil, err
	}
	authority, err := discover(ctx, token)
	if err != nil {
		return nil, err
	}
	key, err := identity.Stage(dir)
	if err != nil {
		return nil, err
	}
	security := &rpc.Security{
		Client: func(string) *tls.Config { return identity.JoinConfig(authority, token.Made) },
		Vet:    (&proofChecker{newest: func() *x509.Certificate { return authority }, token: token}).of,
	}
	reply, err := ask(ctx, nil, rpc.NewJoinPeers(security), token.Addresses, key, name, token)
	if err != nil {
		return nil, err
	}
	if token.Role == identity.Server {
		seal, err := identity.SealKeyOf(reply.GetSealKey())
		if err == nil {
			err = keep(seal)
		}
		if err != nil {
			return nil, err
		}
	}
	grant, err := issuedCertOf(reply)
	if err != nil {
		return nil, err
	}
	credentials, err := identity.Commit(dir, grant)
	if err != nil {
		return nil, err
	}
	return &Joined{Credentials: credentials, SquashRoot: reply.GetSquashRoot()}, nil
}

// discover fetches the token's CA from the first of its addresses that has it.
func discover(ctx context.Context, token *identity.Token) (*x509.Certificate, error) {
	var failures []error
	for _, address := range token.Addresses {
		attempt, cancel := context.WithTimeout(ctx, rpc.AttemptTimeout)
		authority, err := identity.Discover(attempt, address, token.Authority, token.Made)
		cancel()
		if err == nil {
			return authority, nil
		}
		failures = append(failures, err)
	}
	return nil, fmt.Errorf("no server that the token names can be believed: %w", errors.Join(failures...))
}

// ask requests a certificate from the node of this process, if any, and from servers among the peers, and
// follows the leader. Without a token (nil), the host has joined before. It closes the peers.
func ask(
	ctx context.Context, near rpc.Node, peers *rpc.Peers, servers []string, key *identity.Key, name identity.Name, token *identity.Token,
) (*clusterpb.EnrollReply, error) {
	defer peers.Close()
	request := &clusterpb.EnrollRequest{Host: name.Host}
	var err error
	if request.Request, err = key.Request(name); err != nil {
		return nil, err
	}
	if token != nil {
		request.TokenId = token.ID[:]
		request.TokenKey, request.TokenSignature = token.Secret.Sign(request.Request)
	}
	entries := peers.Nodes(servers)
	if near != nil {
		entries = append([]rpc.Node{near}, entries...)
	}
	if len(entries) == 0 {
		return nil, errors.New("no server is known")
	}
	reply, err := rpc.Ask(ctx, rpc.NewRouter(peers, entries...), rpc.Node.Enroll, request)
	if err == nil && reply.GetResult().GetCode() != storepb.Code_OK {
		err = &rpc.RefusedError{Result: reply.GetResult()}
	}
	return reply, err
}

func issuedCertOf(reply *clusterpb.EnrollReply) (identity.IssuedCert, error) {
	grant := identity.IssuedCert{
		Leaf: reply.GetCertificate(), Chain: reply.GetChain(), Authorities: reply.GetAuthorities(), Servers: reply.GetServers(),
	}
	var err error
	grant.Roster, _, err = rosterOf(reply.GetRoster())
	return grant, err
}
