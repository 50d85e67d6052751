package page

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
	"lockfs/raftstore/storepb"
)

// TestAHostKnowsWhatAllItsMountsKnow of the versions of a cluster; one that has no mount tells none.
func TestAHostKnowsWhatAllItsMountsKnow(t *testing.T) {
	session := func(host string, oldest, newest uint32) *clusterpb.Session {
		return &clusterpb.Session{Record: &storepb.SessionRecord{Host: host, OldestVersion: oldest, NewestVersion: newest}}
	}
	records := []*storepb.HostRecord{{Name: "a", Sessions: 2}, {Name: "b", Sessions: 1}, {Name: "c", Sessions: 1}, {Name: "d", Left: true}}
	sessions := []*clusterpb.Session{session("a", 1, 3), session("a", 2, 4), session("b", 1, 2), session("c", 0, 0)}
	shown := make(map[string]string)
	for _, h := range describeHosts(records, sessions, []Member{{Name: "e", Version: "1.0"}}) {
		shown[h.Name] = h.Knows()
	}
	require.Equal(t, map[string]string{"a": "2 to 3", "b": "1 to 2", "c": "1", "d": "", "e": ""}, shown)
}

// TestAHostHasTheVersionsOfItsPrograms: those of its server and of its mounts, each once.
func TestAHostHasTheVersionsOfItsPrograms(t *testing.T) {
	session := func(host, program string) *clusterpb.Session {
		return &clusterpb.Session{Record: &storepb.SessionRecord{Host: host}, Program: program}
	}
	records := []*storepb.HostRecord{{Name: "a", Sessions: 2}, {Name: "b", Sessions: 2}, {Name: "c", Sessions: 1}}
	sessions := []*clusterpb.Session{session("a", "1.2"), session("a", "1.2"), session("b", "1.2"), session("b", "1.3"), session("c", "")}
	shown := make(map[string]string)
	for _, h := range describeHosts(records, sessions, []Member{{Name: "a", Version: "1.2"}, {Name: "d", Version: "1.1"}}) {
		shown[h.Name] = h.Version
	}
	require.Equal(t, map[string]string{"a": "1.2", "b": "1.2,1.3", "c": "", "d": "1.1"}, shown)
}
