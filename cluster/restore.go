package cluster

import (
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"lockfs/cluster/consensus"
	"lockfs/cluster/identity"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// Restoration makes the first server of a new cluster from the state of a lost one.
type Restoration struct {
	Dir   string // its data directory, empty or missing
	Claim consensus.Claim
	State *namespace.Namespace
	Term  ids.Term // of the state
	// Insecure means that the new cluster has no certificates. A cluster without an address has none
	// either.
	Insecure bool
	// Seal is the seal key of the lost cluster. With it the CA and the identities of hosts stay valid.
	// Without it (nil) there is a new CA, and all hosts have to join again.
	Seal *identity.SealKey
	// PastClock accepts a state with numbers ahead of this host's clock (namespace.RebaseOptions).
	PastClock bool
}

// Do makes the data directory, or leaves it empty. Afterwards State is the state in it. The error is
// identity.ErrSeal for the seal key of another cluster, and namespace.ErrClockBehind if this host's clock
// is behind the numbers of the state.
func (r *Restoration) Do(now time.Time) error {
	secure := !r.Insecure && r.Claim.Address != ""
	switch {
	case r.Seal != nil && !secure:
		return errors.New("a server without certificates needs no authority: leave the seal key out")
	case r.Seal != nil && r.State.SigningAuthority() == nil:
		return errors.New("the backup is of a cluster without certificates: there is no authority for the seal key")
	case r.Claim.Address != "":
		if err := checkAdvertised(r.Claim.Address); err != nil {
			return err
		}
	}
	anew := namespace.RebaseOptions{Cluster: consensus.NewClusterID(), ForgetHosts: r.Seal == nil, PastClock: r.PastClock}
	if err := r.State.Rebase(now, anew); err != nil {
		return err
	}
	furnish := r.secure
	if !secure {
		furnish = nil
	}
	return consensus.Create(r.Dir, r.Claim, r.State, r.Term, furnish, slog.New(slog.DiscardHandler))
}

// secure creates the server's identity and records it in the state.
func (r *Restoration) secure() error {
	name, err := identity.ParseName(identity.Server, r.Claim.Name)
	if err != nil {
		return err
	}
	authority, seal, err := r.authority()
	if err != nil {
		return err
	}
	if err := seal.Save(filepath.Join(r.Dir, consensus.SealKeyFile)); err != nil {
		return err
	}
	grant := identity.IssuedCert{Servers: []string{r.Claim.Address}}
	for _, known := range r.State.Authorities() {
		grant.Authorities = append(grant.Authorities, known.GetCertificate())
		if cross := known.GetCrossCertificate(); len(cross) > 0 {
			grant.Chain = append(grant.Chain, cross)
		}
	}
	credentials, err := identifyWith(authority, filepath.Join(r.Dir, consensus.CredentialsDir), name, r.State.Time(), identity.Validity, grant)
	if err != nil {
		return err
	}
	return r.apply(admitFirstServer(authority, credentials))
}

// authority returns the CA of the state, or adds a new one.
func (r *Restoration) authority() (*identity.Authority, identity.SealKey, error) {
	if r.Seal != nil {
		record := r.State.SigningAuthority()
		certificate, err := x509.ParseCertificate(record.GetAuthority().GetCertificate())
		if err != nil {
			return nil, identity.SealKey{}, fmt.Errorf("the certificate of the authority: %w", err)
		}
		authority, err := identity.Decrypt(certificate, record.GetSealedKey(), *r.Seal)
		return authority, *r.Seal, err
	}
	seal := identity.NewSealKey()
	authority, err := identity.NewAuthority(r.State.Time())
	if err != nil {
		return nil, identity.SealKey{}, err
	}
	add, err := addAuthorityOp(authority, nil, seal, nil)
	if err != nil {
		return nil, identity.SealKey{}, err
	}
	return authority, seal, r.apply(add)
}

// apply applies a command that the state has no reason to refuse.
func (r *Restoration) apply(op *storepb.Op) error {
	result := r.State.Apply(r.State.Index()+1, &storepb.Command{Time: r.State.Time().UnixNano(), Op: op})
	if result.GetCode() != storepb.Code_OK {
		return fmt.Errorf("%v: %s", result.GetCode(), result.GetMessage())
	}
	return nil
}
