package namespace

import (
	"lockfs/raftstore/digest"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// quotas are what there may be in directories, at any depth, besides the limits of users and for all together. A quota belongs to the
// inode of its directory, whatever its path, and binds everybody, root too. What counts is names: each is an inode and the bytes of
// that and of the name, so a file with two names in a directory counts there twice, and one with names in two directories in both. A
// directory does not count in its own quota.
type quotas struct {
	byDir *digest.Map[ids.Inode, *storepb.Quota]
}

// MaxQuotas is how many quotas there may be of directories, and as many of users.
const MaxQuotas = 1000

func newQuotas(d *digest.Digest) quotas {
	return quotas{byDir: digest.NewMap(d, quotaValue[ids.Inode])}
}

func newUserQuotas(d *digest.Digest) *digest.Map[uint32, *storepb.Quota] {
	return digest.NewMap(d, quotaValue[uint32])
}

func quotaValue[K any](_ K, m *storepb.Quota) digest.Value { return quotaRecord{m} }
