package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"

	"lockfs/cluster/enrolment"
	"lockfs/cluster/identity"
	"lockfs/cmd/lockfs/internal/cli"
)

// readToken reads the token of a flag; nil: none is given.
func readToken(given string, insecure bool, stdin io.Reader) (*identity.Token, error) {
	switch {
	case given == "":
		return nil, nil
	case insecure:
		return nil, errors.New("a token lets into a cluster that has certificates, and --insecure is for one that has none: give one of them")
	}
	return cli.ReadToken(given, stdin)
}

// identify finds who this host is for the cluster that it mounts, or enters that with a token.
func (p *mountPlan) identify(ctx context.Context, logger *slog.Logger) (*enrolment.MountRenewer, error) {
	dir := p.identity
	if dir == "" {
		dir = cli.DefaultIdentity()
	}
	credentials, err := identity.Load(dir)
	if errors.Is(err, identity.ErrNone) {
		credentials, err = p.enter(ctx, dir)
	}
	if err != nil {
		return nil, err
	}
	name := credentials.Name().Host
	if p.host != "" && p.host != name {
		return nil, fmt.Errorf("this host is called %s by its certificate in %s: leave --name %s out, or enroll it anew", name, dir, p.host)
	}
	p.host = name
	if len(p.servers) == 0 {
		p.servers = credentials.Servers()
	}
	keeper := enrolment.ForMount(credentials, logger)
	p.protect = func(listener net.Listener) net.Listener { return protect(listener, credentials, keeper.Judge()) }
	return keeper, nil
}

// enter makes this host one of the cluster that the token is for.
func (p *mountPlan) enter(ctx context.Context, dir string) (*identity.Credentials, error) {
	if p.token == nil {
		return nil, fmt.Errorf("%s: %w; or give --token, or --identity DIR, or --insecure if the servers were started so", dir, identity.ErrNone)
	}
	if p.token.Role != identity.Client {
		return nil, errors.New("the token is for a server: a mount needs one of `lockfs token create --role client`")
	}
	name := p.host
	if name == "" {
		var err error
		if name, err = cli.HostName(); err != nil {
			return nil, err
		}
	}
	joined, err := enrolment.Join(ctx, p.token, name, dir, nil)
	if err != nil {
		return nil, err
	}
	return joined.Credentials, nil
}
