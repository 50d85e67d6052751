package trust

import (
	"math"
	"slices"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// BeginAnew makes of the table that of another cluster, with another id, which goes on from a state that may not be the last one of the
// lost one: what join tokens were used for since is not known, so there are none any more. forget: it knows neither authorities nor hosts
// either. Keys that were revoked stay so.
func (t *Table) BeginAnew(cluster string, forget bool) {
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
	t.shutOut = t.index
}
