package fusefs

import (
	"iter"
	"slices"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/require"

	"lockfs/raftstore/storepb"
)

// TestReadAgainAfterListing: who lists a directory, and then reads a lock again that he has open, has judged it again.
func TestReadAgainAfterListing(t *testing.T) {
	process := Process{PID: 1, Start: 1}
	fs := &fileSystem{looks: newLooks(), family: func(uint32) iter.Seq[Process] { return slices.Values([]Process{process}) }}
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
