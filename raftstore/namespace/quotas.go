package namespace

import (
	"lockfs/raftstore/digest"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// quotas limit directories, at any depth, besides the limits of users and of all together. A quota belongs to
// the inode of its directory, whatever its path, and binds every user, root too. It counts names: each is an
// inode, with the bytes of that and of the name. So a file with two names in a directory counts there twice.
// A directory does not count in its own quota.
type quotas struct {
	byDir *digest.Map[ids.Inode, *storepb.Quota]
}

// MaxQuotas is the most quotas of directories, and the most of users.
const MaxQuotas = 1000

func newQuotas(d *digest.Digest) quotas {
	return quotas{byDir: digest.NewMap(d, quotaValue[ids.Inode])}
}

func newUserQuotas(d *digest.Digest) *digest.Map[uint32, *storepb.Quota] {
	return digest.NewMap(d, quotaValue[uint32])
}

func quotaValue[K any](_ K, m *storepb.Quota) digest.Value { return quotaRecord{m} }
