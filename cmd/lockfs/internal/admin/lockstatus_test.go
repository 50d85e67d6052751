package admin

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/lockjson"
)

func TestLocksAreCounted(t *testing.T) {
	locks := []lockjson.Lock{{State: "held", Host: "a"}, {State: "held", Host: "b"}, {State: "stale", Host: "a"}, {State: "unreachable", Host: "c"}}
	require.Equal(t, "2 held, 1 of them by this host; 2 stale or on unreachable hosts", describeLocks(locks, []string{"a"}))
	require.Equal(t, "0 held, 0 of them by this host", describeLocks(nil, []string{"a"}))
}
