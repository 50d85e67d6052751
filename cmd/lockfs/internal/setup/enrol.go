package setup

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"lockfs/cluster/enrolment"
	"lockfs/cluster/identity"
)

// enrolTime is how long a cluster may take to let this host in.
const enrolTime = 30 * time.Second

// sealKeyFile has, in the data directory of a server, what opens the key of the cluster's authority.
const sealKeyFile = "ca.key"

// enrol gets an identity by a token.
func (h *host) enrol(ctx context.Context, r *report, token *identity.Token) error {
	ctx, cancel := context.WithTimeout(ctx, enrolTime)
	defer cancel()
	defer r.waits("for the cluster to let this host in")()
	joined, err := enrolment.Join(ctx, token, h.name, h.identityDir(), func(key identity.SealKey) error {
		return key.Save(filepath.Join(h.data, sealKeyFile))
	})
	if err != nil {
		return fmt.Errorf("this host is not let in: %w", err)
	}
	r.did("identity", "%s, authority %s", joined.Credentials.Name(), joined.Credentials.Signer().Short())
	return nil
}
