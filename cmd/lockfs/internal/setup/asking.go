package setup

import (
	"context"
	"fmt"
	"time"

	"lockfs/cluster"
	"lockfs/cluster/identity"
	"lockfs/cmd/lockfs/internal/admin"
	"lockfs/cmd/lockfs/internal/cli"
)

// askTime is the time limit for a reply of the cluster.
const askTime = 15 * time.Second

// ask asks the cluster through the daemon of this host.
func (h *host) ask(ctx context.Context, question func(context.Context, *cluster.Admin) error) error {
	return asking(ctx, &cli.ClusterFlags{Socket: h.socket()}, nil, question)
}

// askServers asks the other servers directly with the identity of this host.
func (h *host) askServers(ctx context.Context, servers []string, question func(context.Context, *cluster.Admin) error) error {
	return asking(ctx, &cli.ClusterFlags{Servers: servers, Identity: h.identityDir()}, nil, question)
}

// showVoters prints how many voters may fail if their number is even, which is a normal step on the way to
// three or five.
func (h *host) showVoters(ctx context.Context, r *report) {
	_ = h.ask(ctx, func(ctx context.Context, asked *cluster.Admin) error {
		members, err := asked.Members(ctx)
		switch voters := admin.CountVoters(members); {
		case voters == 2:
			r.is("voters", "2 so far, and neither may fail; with a third server, one may")
		case voters > 0 && voters%2 == 0:
			r.is("voters", "%d so far, of which %d may fail; with one more server, %d may", voters, voters/2-1, voters/2)
		}
		return err
	})
}

// asking calls turnedAway, if not nil, when a server does not know this host.
func asking(ctx context.Context, whom *cli.ClusterFlags, turnedAway func(), question func(context.Context, *cluster.Admin) error) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	asked, err := whom.Find(ctx)
	if err != nil {
		return err
	}
	if asked.Security != nil {
		asked.Security.OnRejected = turnedAway
	}
	admin, err := cluster.NewAdmin(asked.Addresses, asked.Security)
	if err != nil {
		return err
	}
	defer admin.Close()
	return asked.Explain(question(ctx, admin))
}

// Uses of the tokens of a new cluster: servers up to five in all, and as many mounts as an administrator will
// set up in an hour.
const (
	firstServers = 4
	firstClients = 100
	firstTTL     = time.Hour
)

// firstTokens creates the tokens for the next hosts, unless other hosts have joined or an earlier run has
// created them.
func (h *host) firstTokens(ctx context.Context) (tokens []*admin.Token, err error) {
	plans := []admin.TokenPlan{
		{Role: identity.Server, Uses: firstServers, TTL: firstTTL},
		{Role: identity.Client, Uses: firstClients, TTL: firstTTL},
	}
	err = h.ask(ctx, func(ctx context.Context, asked *cluster.Admin) error {
		members, err := asked.Members(ctx)
		if err != nil || len(members) > 1 {
			return err
		}
		made, err := admin.ListTokens(ctx, asked)
		if err != nil || len(made) > 0 {
			return err
		}
		for _, plan := range plans {
			token, err := admin.CreateToken(ctx, asked, &plan)
			if err != nil {
				return fmt.Errorf("create a token for further hosts (retry with `lockfs token create`): %w", err)
			}
			tokens = append(tokens, token)
		}
		return nil
	})
	return tokens, err
}
