package raftstore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// TestEndsOfWaitsAreKnownAsFarBackAsTheyAreKept. A mount that asks for older ones is to look at all of its waits.
func TestEndsOfWaitsAreKnownAsFarBackAsTheyAreKept(t *testing.T) {
	const session, other = 7, 8
	e := newEndings(10)
	end := func(index ids.Index, of, seq uint64) {
		e.add(index, []*storepb.AwaitLock{{Session: of, Seq: seq}})
	}
	numbers := func(after ids.Index) (seqs []uint64) {
		ended, known := e.of(session, after)
		require.True(t, known)
		for _, request := range ended {
			seqs = append(seqs, request.GetSeq())
		}
		return seqs
	}
	_, known := e.of(session, 9)
	require.False(t, known, "before it began")
	require.Empty(t, numbers(10))
	end(11, session, 1)
	end(12, other, 2)
	e.add(13, []*storepb.AwaitLock{{Session: session, Seq: 3}, {Session: session, Seq: 4}})
	require.Equal(t, []uint64{1, 3, 4}, numbers(10))
	require.Equal(t, []uint64{3, 4}, numbers(11))
	require.Empty(t, numbers(13))
	for index := ids.Index(14); e.after == 10; index++ {
		end(index, session, uint64(index))
	}
	_, known = e.of(session, e.after-1)
	require.False(t, known)
	require.Len(t, numbers(e.after), keptEndings)
	e.restart(1_000_000)
	_, known = e.of(session, 999_999)
	require.False(t, known)
	require.Empty(t, numbers(1_000_000))
}
