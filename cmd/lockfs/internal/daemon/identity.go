package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"lockfs/cluster/enrolment"
	"lockfs/cluster/identity"
	"lockfs/cmd/lockfs/internal/cli"
)

const insecureUsage = "plain TCP: whoever reaches a server's port may do anything, in anybody's name"

// identify finds out who this host is and which servers it asks, and has it come in if it is to. It answers nil without certificates.
func (p *mountPlan) identify(ctx context.Context, logger *slog.Logger) (*enrolment.MountKeeper, error) {
	if p.insecure {
		return nil, p.identifyPlain()
	}
	if p.identity == "" {
		p.identity = cli.DefaultIdentity()
	}
	credentials, err := identity.Load(p.identity)
	if errors.Is(err, identity.ErrNone) && p.token != "" {
		credentials, err = p.join(ctx)
	}
	if err != nil {
		return nil, err
	}
	name := credentials.Name().Host
	if p.host != "" && p.host != name {
		return nil, fmt.Errorf("this host is %q by its identity in %s, and cannot mount as %q", name, p.identity, p.host)
	}
	p.host = name
	if len(p.servers) == 0 {
		p.servers = credentials.Servers()
	}
	return enrolment.ForMount(credentials, logger), nil
}

func (p *mountPlan) identifyPlain() (err error) {
	if p.identity != "" || p.token != "" {
		return errors.New("a cluster with --insecure has no identities and no tokens: give the one or the other")
	}
	if p.host == "" {
		p.host, err = cli.HostName()
	}
	if len(p.servers) == 0 {
		p.servers = []string{cli.DefaultAddress}
	}
	return err
}

// join has this host come in with its token.
func (p *mountPlan) join(ctx context.Context) (*identity.Credentials, error) {
	token, err := identity.ParseToken(p.token)
	if err != nil {
		return nil, fmt.Errorf("--token: %w", err)
	}
	if token.Role != identity.Client {
		return nil, fmt.Errorf("the token is for a %s: a mount needs one of `lockfs token create --role client`", token.Role)
	}
	if p.host == "" {
		if p.host, err = cli.HostName(); err != nil {
			return nil, err
		}
	}
	joined, err := enrolment.Join(ctx, token, p.host, p.identity, nil)
	if err != nil {
		return nil, fmt.Errorf("this host is not let in: %w", err)
	}
	return joined.Credentials, nil
}
