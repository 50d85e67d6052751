package consensus

import (
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"lockfs/raftstore/ids"
)

// TestSizesOfEntries compares what is known of a log's entries with the log itself, whatever was stored
// in it and cut from it.
func TestSizesOfEntries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		silence := NewStepDown()
		disk := newDisk("", func(error) {}, silence, newDiskReserve("", 0, quietLogger()))
		store := raft.NewInmemStore()
		log := newMeteredLog(&watchedLog{store, disk}, entrySizes{})
		next := uint64(1)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			first, err := store.FirstIndex()
			require.NoError(t, err)
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0: // a snapshot has come
				if first == 0 {
					next += uint64(rapid.IntRange(0, 5).Draw(t, "gap"))
				}
			case 1: // the beginning goes, behind a snapshot
				if first != 0 {
					require.NoError(t, log.DeleteRange(first, rapid.Uint64Range(first, next-1).Draw(t, "last")))
				}
			case 2: // the end goes: another leader has other entries
				if first != 0 {
					from := rapid.Uint64Range(first, next-1).Draw(t, "from")
					require.NoError(t, log.DeleteRange(from, next-1))
					next = from
				}
			default:
				var entries []*raft.Log
				for range rapid.IntRange(1, 5).Draw(t, "entries") {
					entries = append(entries, &raft.Log{Index: next, Data: make([]byte, rapid.IntRange(0, 300).Draw(t, "bytes"))})
					next++
				}
				require.NoError(t, log.StoreLogs(entries))
			}
			requireSizes(t, log, store)
		}
	})
}

func requireSizes(t *rapid.T, log *meteredLog, store raft.LogStore) {
	first, err := store.FirstIndex()
	require.NoError(t, err)
	last, err := store.LastIndex()
	require.NoError(t, err)
	size := func(index uint64) uint64 {
		var entry raft.Log
		require.NoError(t, store.GetLog(index, &entry))
		return entrySize(&entry)
	}
	after := rapid.Uint64Range(0, last+2).Draw(t, "after")
	until := rapid.Uint64Range(0, last+2).Draw(t, "until")
	want := uint64(0)
	for index := max(after+1, first); index <= min(until, last) && first != 0; index++ {
		want += size(index)
	}
	require.Equal(t, want, log.between(ids.Index(after), ids.Index(until)))
	most := rapid.Uint64Range(0, 2000).Draw(t, "most")
	entries, bytes := uint64(0), uint64(0)
	for index := last; index >= first && first != 0; index-- {
		if bytes += size(index); bytes > most {
			break
		}
		entries++
	}
	require.Equal(t, entries, log.newest(most))
}

// TestBatchesHaveABound: what is left out of a request is sent with the next one.
func TestBatchesHaveABound(t *testing.T) {
	for _, row := range []struct {
		size, entries, want int
	}{{10, 64, 64}, {256 << 10, 64, 7}, {maxBatch + 1, 3, 1}, {10, 0, 0}} {
		req := new(raft.AppendEntriesRequest)
		for i := range row.entries {
			req.Entries = append(req.Entries, &raft.Log{Index: uint64(i), Data: make([]byte, row.size)})
		}
		limitBatch(req)
		require.Len(t, req.Entries, row.want)
	}
}
