package fusefs

import (
	"iter"
	"slices"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/require"

	"lockfs/fusefs/lookguard"
	"lockfs/raftstore/storepb"
)

// TestReadAgainAfterListing: who lists a directory, and then reads a lock again that he has open, has judged
// it again.
func TestReadAgainAfterListing(t *testing.T) {
	process := lookguard.Process{PID: 1, Start: 1}
	memory := lookguard.New(func(uint32) iter.Seq[lookguard.Process] { return slices.Values([]lookguard.Process{process}) })
	seen := []*storepb.Observation{{Parent: 1, Name: []byte("lock"), Token: 7}}
	handle := &fileHandle{by: seen, keepName: func([]byte) {}}
	held := func() int { return len(memory.SeenBy(5, lookguard.Name{Parent: 1, Name: "lock"})) }

	handle.saw(memory, fuse.Caller{Pid: 5}, seen, lookguard.Read)
	require.Equal(t, 1, held())
	memory.Listed(fuse.Caller{Pid: 5}, 1)
	require.Zero(t, held())
	handle.saw(memory, fuse.Caller{Pid: 5}, seen, lookguard.Read)
	require.Equal(t, 1, held())
}
