package admin

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/lockjson"
)

func TestWhereOneStands(t *testing.T) {
	stands := func(s clusterStatus) (said []string) {
		s.stand(func(what, format string, args ...any) { said = append(said, what+": "+fmt.Sprintf(format, args...)) })
		return said
	}
	a, b, dead := nodeStatus{Name: "a"}, nodeStatus{Name: "b"}, nodeStatus{Name: "c", Error: "unreachable"}
	require.Equal(t, []string{"cluster: led by b; 2 of 2 servers answer"}, stands(clusterStatus{Leader: "b", Nodes: []nodeStatus{a, b}}))
	require.Equal(t, []string{"cluster: led by b; 2 of 3 servers answer", "trouble: no answer of c: `lockfs status` tells more"},
		stands(clusterStatus{Leader: "b", Nodes: []nodeStatus{a, b, dead}}))
	require.Equal(t, []string{"cluster: no leader is known: `lockfs doctor` looks for the reason; 1 of 1 servers answer"},
		stands(clusterStatus{Nodes: []nodeStatus{a}}))

	locks := []lockjson.Lock{{State: "held", Host: "a"}, {State: "held", Host: "b"}, {State: "stale", Host: "a"}, {State: "unreachable", Host: "c"}}
	require.Equal(t, "2 held, 1 of them by this host; 2 stale or of hosts that are silent", describeLocks(locks, []string{"a"}))
	require.Equal(t, "0 held, 0 of them by this host", describeLocks(nil, []string{"a"}))
}
