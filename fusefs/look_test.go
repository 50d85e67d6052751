package fusefs

import (
	"iter"
	"slices"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/require"

	"lockfs/raftstore/storepb"
)

// looking has one family of processes.
func looking(family iter.Seq[Process]) *fileSystem {
	return newFileSystem(nil, Options{Family: func(uint32) iter.Seq[Process] { return family }})
}

// TestReadAgainAfterListing: who lists a directory, and then reads a lock again that he has open, has judged it again.
func TestReadAgainAfterListing(t *testing.T) {
	process := Process{PID: 1, Start: 1}
	fs := looking(slices.Values([]Process{process}))
	seen := []*storepb.Look{{Parent: 1, Name: []byte("lock"), Token: 7}}
	handle := &fileHandle{by: seen}
	held := func() int { return len(fs.looks.recall([]Process{process}, name{1, "lock"})) }

	fs.sawThrough(handle, fuse.Caller{Pid: 5}, seen, read)
	require.Equal(t, 1, held())
	fs.listed(fuse.Caller{Pid: 5}, 1)
	require.Zero(t, held())
	fs.sawThrough(handle, fuse.Caller{Pid: 5}, seen, read)
	require.Equal(t, 1, held())
}

// TestWhoAsksIsFoundOutOnlyWhereItMatters: it takes files in /proc to be read, one for each of a family.
func TestWhoAsksIsFoundOutOnlyWhereItMatters(t *testing.T) {
	asked := 0
	family := func(yield func(Process) bool) {
		for i := range 9 {
			if asked++; !yield(Process{PID: 1 + i, Start: 1}) {
				return
			}
		}
	}
	fs := looking(family)
	caller := fuse.Caller{Pid: 5}
	data := []*storepb.Look{{Parent: 1, Name: []byte("data"), Token: 7, Data: true}}
	for _, row := range []struct {
		what string
		do   func()
		asks int
	}{
		{"data that is read where nobody has seen a lock", func() { fs.saw(caller, data, read) }, 0},
		{"a removal when nobody has seen anything", func() { fs.seenBy(place{caller: &storepb.Caller{}, parent: 1, name: []byte("lock")}) }, 0},
		{"a lock that is read", func() { fs.saw(caller, lockAt(1, "lock", 7), read) }, 9},
		{"a directory that is listed, in which nobody has seen anything", func() { fs.listed(caller, 2) }, 0},
		{"a directory that is listed", func() { fs.listed(caller, 1) }, 1},
		{"the same again, with nothing new in between", func() { fs.listed(caller, 1) }, 0},
		{"a lock that is read again", func() { fs.saw(caller, lockAt(1, "lock", 7), read) }, 9},
		{"a directory that is listed again", func() { fs.listed(caller, 1) }, 1},
		{"the same by another thread", func() { fs.listed(fuse.Caller{Pid: 6}, 1) }, 1},
		{"data where there are locks, for it may have been one", func() { fs.saw(caller, data, read) }, 9},
		{"what is gone of a directory in which nobody has seen anything", func() { fs.tookAway(caller, place{parent: 2}) }, 0},
	} {
		asked = 0
		row.do()
		require.Equal(t, row.asks, asked, row.what)
	}
}
