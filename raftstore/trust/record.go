package trust

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// What is kept is bounded, in bytes, so that a snapshot can always be read again.
const (
	maxName        = 255
	maxTokenID     = 64
	maxCertificate = 8 << 10 // or a sealed key
)

// Len is the number of records that Each visits.
func (t *Table) Len() int {
	return t.authorities.Len() + t.tokens.Len() + t.hosts.Len() + t.revoked.Len()
}

// Each visits what a table holds apart from Cluster and ShutOut, in an order that it alone determines, until visit answers false.
func (t *Table) Each(visit func(*storepb.Record) bool) {
	going := true
	put := func(record *storepb.Record) bool {
		going = visit(record)
		return going
	}
	t.authorities.Scan(func(_ ids.Index, record *storepb.AuthorityRecord) bool {
		return put(&storepb.Record{Record: &storepb.Record_Authority{Authority: record}})
	})
	if going {
		t.tokens.Scan(func(_ string, record *storepb.TokenRecord) bool {
			return put(&storepb.Record{Record: &storepb.Record_Token{Token: record}})
		})
	}
	if going {
		t.hosts.Scan(func(_ string, host *storepb.Admission) bool {
			return put(&storepb.Record{Record: &storepb.Record_Admission{Admission: host}})
		})
	}
	if going {
		t.revoked.Scan(func(keyHash string, index ids.Index) bool {
			key := &storepb.RevokedKey{KeyHash: []byte(keyHash), Index: uint64(index)}
			return put(&storepb.Record{Record: &storepb.Record_RevokedKey{RevokedKey: key}})
		})
	}
}

// RestoreHeader gives an empty table what Each does not visit.
func (t *Table) RestoreHeader(cluster string, shutOut ids.Index) {
	t.cluster, t.shutOut = cluster, shutOut
}

// The rest is given back record by record, and then Check tells whether that can be.

// RestoreAuthority puts an authority back.
func (t *Table) RestoreAuthority(record *storepb.AuthorityRecord) {
	t.authorities.Set(ids.Index(record.GetAddedIndex()), record)
}

// RestoreToken puts a token back.
func (t *Table) RestoreToken(record *storepb.TokenRecord) { t.putToken(record) }

// RestoreHost puts a host back.
func (t *Table) RestoreHost(host *storepb.Admission) { t.hosts.Set(host.GetName(), host) }

// RestoreRevoked puts a key back that was revoked.
func (t *Table) RestoreRevoked(key *storepb.RevokedKey) {
	t.revokeKey(string(key.GetKeyHash()), ids.Index(key.GetIndex()))
}

// Check tells what is wrong with a table that was restored, if anything.
func (t *Table) Check() error {
	if len(t.cluster) > maxName || t.shutOut > t.index {
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
