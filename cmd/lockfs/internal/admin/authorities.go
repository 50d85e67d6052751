package admin

import (
	"context"
	"errors"
	"lockfs/cluster"
	"lockfs/cluster/identity"
	"lockfs/raftstore/storepb"
)

// authorities answers those that are trusted; the first one signs.
func authorities(ctx context.Context, admin *cluster.Admin) ([]*storepb.Authority, error) {
	result, err := admin.Query(ctx, &storepb.Query{Query: &storepb.Query_ListAuthorities{ListAuthorities: &storepb.ListAuthorities{}}})
	return result.GetAuthorities(), err
}

// signing answers the one that signs.
func signing(ctx context.Context, admin *cluster.Admin) (identity.Fingerprint, error) {
	found, err := authorities(ctx, admin)
	if err != nil {
		return identity.Fingerprint{}, err
	}
	if len(found) == 0 {
		return identity.Fingerprint{}, errors.New("this cluster has no authority: its servers were started with --insecure")
	}
	return identity.Fingerprint(found[0].GetFingerprint()), nil
}
