package setup

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"lockfs/cluster"
	"lockfs/cluster/certrenew"
	"lockfs/cluster/consensus"
	"lockfs/cluster/identity"
)

// enrolTime is the time limit for enrolment.
const enrolTime = 30 * time.Second

// enrol gets an identity with a token.
func (h *host) enrol(ctx context.Context, r *report, token *identity.Token) error {
	ctx, cancel := context.WithTimeout(ctx, enrolTime)
	defer cancel()
	defer r.waits("for the cluster to enrol this host")()
	credentials, err := h.join(ctx, token)
	if err != nil {
		return fmt.Errorf("this host is not enrolled: %w", err)
	}
	r.did("identity", "%s, CA %s", credentials.Name(), credentials.Signer().Short())
	return nil
}

func (h *host) join(ctx context.Context, token *identity.Token) (*identity.Credentials, error) {
	if h.role == identity.Client {
		joined, err := certrenew.Join(ctx, token, h.name, h.identityDir(), nil)
		if err != nil {
			return nil, err
		}
		return joined.Credentials, nil
	}
	if err := h.requireNoData(); err != nil { // otherwise the token is used up, and the server does not start with the old data
		return nil, err
	}
	if err := cluster.Enroll(ctx, cluster.Config{Name: h.name, DataDir: h.data}, token); err != nil {
		return nil, err
	}
	return identity.Load(h.identityDir())
}

// requireNoData refuses the data directory of a server after it has left its cluster.
func (h *host) requireNoData() error {
	if !consensus.HasIdentity(h.data) {
		return nil
	}
	return fmt.Errorf("%s has the data of a server that has left a cluster: remove it, or give another --data", h.data)
}

// bootstrap makes this host the first server of a new cluster, also after an interruption.
func (h *host) bootstrap(r *report) error {
	if !consensus.IsBootstrapping(h.data) {
		if err := h.requireNoData(); err != nil {
			return err
		}
	}
	made, err := cluster.Bootstrap(cluster.Config{
		Name: h.name, DataDir: h.data, Address: h.settings.get(addrVariable), Advertise: h.settings.get(advertiseVariable),
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	r.did("cluster", "%s, with this host as its first server", made)
	return nil
}
