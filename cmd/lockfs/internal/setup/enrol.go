package setup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"lockfs/cluster"
	"lockfs/cluster/consensus"
	"lockfs/cluster/enrolment"
	"lockfs/cluster/identity"
)

// enrolTime is how long a cluster may take to let this host in.
const enrolTime = 30 * time.Second

// enrol gets an identity by a token.
func (h *host) enrol(ctx context.Context, r *report, token *identity.Token) error {
	ctx, cancel := context.WithTimeout(ctx, enrolTime)
	defer cancel()
	defer r.waits("for the cluster to let this host in")()
	credentials, err := h.join(ctx, token)
	if err != nil {
		return fmt.Errorf("this host is not let in: %w", err)
	}
	r.did("identity", "%s, authority %s", credentials.Name(), credentials.Signer().Short())
	return nil
}

func (h *host) join(ctx context.Context, token *identity.Token) (*identity.Credentials, error) {
	if h.role == identity.Client {
		joined, err := enrolment.Join(ctx, token, h.name, h.identityDir(), nil)
		if err != nil {
			return nil, err
		}
		return joined.Credentials, nil
	}
	// With other data the server would not start, and the token would be used up.
	if _, err := os.Stat(filepath.Join(h.data, consensus.IdentityFile)); !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(err, fmt.Errorf("%s has the data of a server that has left a cluster: remove that, or give another --data", h.data))
	}
	if err := cluster.Enroll(ctx, cluster.Config{Name: h.name, DataDir: h.data}, token); err != nil {
		return nil, err
	}
	return identity.Load(h.identityDir())
}
