package lookguard

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/storepb"
)

// TestHandedOverMemory holds everybody to what he saw, as before.
func TestHandedOverMemory(t *testing.T) {
	m := New(nil)
	family, other := []Process{{1, 10}, {2, 20}}, []Process{{3, 30}}
	seen := func(parent uint64, name string, token uint64) []*storepb.Observation {
		return []*storepb.Observation{{Parent: parent, Name: []byte(name), Token: token}}
	}
	m.note(family, 0, seen(1, "a", 7), Read)
	m.note(other, 5, seen(1, "a", 8), Made)
	m.note(family, 0, seen(2, "lock\xff", 9), MadeDirectory)
	m.list(other[0], 5, 2)
	m.note(other, 5, seen(2, "b", 3), Read)

	heir := New(nil)
	heir.Restore(m.Save())
	names := []Name{{1, "a"}, {2, "lock\xff"}, {2, "b"}}
	for _, who := range [][]Process{family, other} {
		require.NotEmpty(t, m.recall(who, names...))
		require.Equal(t, m.recall(who, names...), heir.recall(who, names...))
		require.Equal(t, m.recall(who), heir.recall(who), "directories")
	}
	require.Equal(t, m.table.bytes, heir.table.bytes)
	m.note(family, 0, seen(1, "a", 11), Read)
	heir.note(family, 0, seen(1, "a", 11), Read)
	require.Equal(t, m.recall(family, names...), heir.recall(family, names...))
}
