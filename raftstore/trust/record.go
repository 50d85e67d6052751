package trust

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"lockfs/raftstore/digest"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Tables returns the state of a table apart from Cluster, Earlier and LastRevocation.
func (t *Table) Tables() []digest.Table {
	return []digest.Table{t.authorities, t.tokens, t.hosts, t.revoked}
}

// RestoreHeader gives an empty table the state outside Tables.
func (t *Table) RestoreHeader(cluster string, earlier []string, shutOut ids.Index) {
	t.cluster, t.earlier, t.lastRevocation = cluster, earlier, shutOut
}

// The rest is restored record by record. Then Check reports whether the table is valid.

// RestoreAuthority restores an authority.
func (t *Table) RestoreAuthority(record *storepb.AuthorityRecord) {
	t.authorities.Set(ids.Index(record.GetAddedIndex()), record)
}

// RestoreToken restores a token.
func (t *Table) RestoreToken(record *storepb.TokenRecord) { t.putToken(record) }

// RestoreHost restores a host.
func (t *Table) RestoreHost(host *storepb.Admission) { t.hosts.Set(host.GetName(), host) }

// RestoreRevoked restores a revoked key.
func (t *Table) RestoreRevoked(key *storepb.RevokedKey) {
	t.revokeKey(string(key.GetKeyHash()), ids.Index(key.GetIndex()))
}

// Check returns the error in a restored table, or nil.
func (t *Table) Check() error {
	if len(t.cluster) > maxName || t.lastRevocation > t.index {
		return errors.New("a header that cannot be of a cluster")
	}
	wrong := ""
	t.authorities.Scan(func(_ ids.Index, record *storepb.AuthorityRecord) bool {
		switch wrong = checkAuthority(record); {
		case wrong != "":
		case ids.Index(record.GetAddedIndex()) > t.index:
			wrong = "an authority that is still to be added"
		case t.authority(record.GetAuthority().GetFingerprint()) != record:
			wrong = "an authority that was added twice"
		}
		return wrong == ""
	})
	t.tokens.Scan(func(_ string, record *storepb.TokenRecord) bool {
		wrong = first(wrong, checkToken(record))
		return wrong == ""
	})
	t.hosts.Scan(func(name string, host *storepb.Admission) bool {
		if wrong = first(wrong, checkHost(host)); wrong != "" {
			wrong = fmt.Sprintf("host %q: %s", name, wrong)
		}
		return wrong == ""
	})
	t.revoked.Scan(func(keyHash string, index ids.Index) bool {
		if len(keyHash) != sha256.Size || index > t.index {
			wrong = first(wrong, "a revoked key that cannot be one")
		}
		return wrong == ""
	})
	if t.revoked.Len() != t.revocations.Len() {
		wrong = first(wrong, "two keys that were revoked by one command")
	}
	if wrong != "" {
		return errors.New(wrong)
	}
	return nil
}

func first(wrong, other string) string {
	if wrong != "" {
		return wrong
	}
	return other
}
