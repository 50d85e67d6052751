package inotify

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
)

func TestWatchesAreLookedForOnlyIfTheKernelKnowsWhatWasRemoved(t *testing.T) {
	known := NewKnown()
	searches, told := 0, []ids.Inode{}
	r := NewRemovals(known.Knows, 0, func(removed namespace.Removal) { told = append(told, removed.Ino) })
	r.watched = func() map[ids.Inode]bool {
		searches++
		return map[ids.Inode]bool{7: true, 9: true}
	}
	r.Add(namespace.Removal{Parent: 1, Name: "other", Ino: 8})
	require.Zero(t, r.tell(namespace.Removal{Parent: 1, Name: "watched", Ino: 7}), "nothing to wait for")
	require.Zero(t, searches)

	known.Told(7)
	known.Told(7)
	known.Told(8)
	known.Forgot(7, 1)
	r.Add(namespace.Removal{Parent: 1, Name: "other", Ino: 8})
	r.Add(namespace.Removal{Parent: 1, Name: "unknown", Ino: 9})
	require.GreaterOrEqual(t, r.tell(namespace.Removal{Parent: 1, Name: "watched", Ino: 7}), watchedInterval)
	require.Equal(t, 1, searches)
	require.Equal(t, []ids.Inode{7}, told)

	known.Forgot(7, 1)
	known.Forgot(8, 1)
	require.Zero(t, r.tell(namespace.Removal{Parent: 1, Name: "watched", Ino: 7}))
	require.Equal(t, 1, searches)
}

func TestASearchThatTakesLongIsFollowedByALongPause(t *testing.T) {
	const took = 60 * time.Millisecond
	r := NewRemovals(func(ids.Inode) bool { return true }, 0, func(namespace.Removal) {})
	r.watched = func() map[ids.Inode]bool {
		time.Sleep(took)
		return nil
	}
	require.GreaterOrEqual(t, r.tell(namespace.Removal{Parent: 1, Name: "removed", Ino: 7}), watchedShare*took)
}
