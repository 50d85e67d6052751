package lease

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/ids"
)

func TestReadsOften(t *testing.T) {
	table := leading()
	ask := func(of Holder, ino ids.Inode, changed int64) (often bool) { return table.ReadsOften(of, ino, changed) }
	for range grantThreshold {
		require.False(t, ask(here, 7, 1))
		require.False(t, ask(there, 7, 1), "each mount by itself")
		require.False(t, ask(here, 8, 1), "and of each inode")
	}
	require.True(t, ask(here, 7, 1))
	require.True(t, ask(here, 7, 1))
	for range grantThreshold {
		require.False(t, ask(here, 7, 2), "it has changed since")
	}
	require.True(t, ask(here, 7, 2))
	for ino := range ids.Inode(2 * maxReadCounts) {
		ask(here, ino, 1)
	}
	require.LessOrEqual(t, len(table.readCounts), maxReadCounts)
}
