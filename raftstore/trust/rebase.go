package trust

import (
	"math"
	"slices"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Rebase makes this the table of another cluster with another id, which continues from a state that may
// not be the last one. Join tokens are deleted, since their later use is unknown. forget also deletes
// authorities and hosts. Revoked keys stay revoked.
func (t *Table) Rebase(cluster string, forget bool) {
	if t.cluster != "" {
		t.earlier = append(slices.Clip(t.earlier), t.cluster)
	}
	t.cluster = cluster
	for _, token := range t.Tokens() {
		t.tokens.Delete(string(token.GetId()))
	}
	t.nextExpiry = math.MaxInt64
	if !forget {
		return
	}
	for record := t.Signing(); record != nil; record = t.Signing() {
		t.authorities.Delete(ids.Index(record.GetAddedIndex()))
	}
	var names []string
	t.HostsAfter("", func(host *storepb.Admission) bool {
		names = append(names, host.GetName())
		return true
	})
	for _, name := range names {
		t.hosts.Delete(name)
	}
	t.lastRevocation = t.index
}
