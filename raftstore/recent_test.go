package raftstore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/ids"
)

// TestRecentItemsAreKnownAsFarBackAsTheyAreKept. A mount that asks for older ones looks at all of its waits.
func TestRecentItemsAreKnownAsFarBackAsTheyAreKept(t *testing.T) {
	r := recent[int]{after: 10}
	since := func(after ids.Index) (items []int) {
		list, known := r.since(after)
		require.True(t, known)
		for _, item := range list {
			items = append(items, item.item)
		}
		return items
	}
	_, known := r.since(9)
	require.False(t, known, "before it began")
	require.Empty(t, since(10))
	r.add(11, []int{1})
	r.add(12, nil)
	r.add(13, []int{3, 4})
	require.Equal(t, []int{1, 3, 4}, since(10))
	require.Equal(t, []int{3, 4}, since(11))
	require.Empty(t, since(13))
	for index := ids.Index(14); r.after == 10; index++ {
		r.add(index, []int{int(index)})
	}
	_, known = r.since(r.after - 1)
	require.False(t, known)
	require.Len(t, since(r.after), keptRecent)
	r.restart(1_000_000)
	_, known = r.since(999_999)
	require.False(t, known)
	require.Empty(t, since(1_000_000))
}
