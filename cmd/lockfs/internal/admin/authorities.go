package admin

import (
	"context"
	"errors"
	"lockfs/cluster"
	"lockfs/cluster/identity"
	"lockfs/raftstore/storepb"
)

// authorities returns the trusted CAs, the signing one first.
func authorities(ctx context.Context, admin *cluster.Admin) ([]*storepb.Authority, error) {
	result, err := admin.Query(ctx, &storepb.Query{Query: &storepb.Query_ListAuthorities{ListAuthorities: &storepb.ListAuthorities{}}})
	return result.GetAuthorities(), err
}

// signing returns the fingerprint of the signing CA.
func signing(ctx context.Context, admin *cluster.Admin) (identity.Fingerprint, error) {
	found, err := authorities(ctx, admin)
	if err != nil {
		return identity.Fingerprint{}, err
	}
	if len(found) == 0 {
		return identity.Fingerprint{}, errors.New("the cluster has no CA because its servers run with --insecure: start them without it to use certificates")
	}
	return identity.Fingerprint(found[0].GetFingerprint()), nil
}
