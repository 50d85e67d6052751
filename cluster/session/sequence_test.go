package session

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"lockfs/raftstore/ids"
)

func TestSequenceAcknowledgesOnlyFinishedCalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		last := ids.Sequence(rapid.Uint64Range(0, 5).Draw(t, "last"))
		open := make(map[ids.Sequence]bool)
		n := newSequence(last)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "take") {
				seq, acked := n.take(func(ids.Sequence) {})
				require.Equal(t, last+1, seq)
				for at := ids.Sequence(1); at <= acked; at++ {
					require.False(t, open[at], "%d was acknowledged while it was open", at)
				}
				require.True(t, acked == last || open[acked+1], "acknowledged less than could be")
				last, open[seq] = seq, true
				continue
			}
			seq := ids.Sequence(rapid.Uint64Range(1, uint64(max(last, 1))).Draw(t, "done"))
			n.done(seq)
			open[seq] = false
		}
	})
}

// TestSequenceOfAnEarlierProcess are acknowledged once those that were under way are done, however many there are between.
func TestSequenceOfAnEarlierProcess(t *testing.T) {
	const started = 5 * time.Hour
	n := sequenceAfter(10, started)
	n.reopen(7)
	n.reopen(10)
	take := func() (seq, acked ids.Sequence) { return n.take(func(ids.Sequence) {}) }
	first, acked := take()
	require.Equal(t, ids.Sequence(started)+1, first)
	require.Equal(t, ids.Sequence(6), acked)
	n.done(7)
	_, acked = take()
	require.Equal(t, ids.Sequence(9), acked)
	n.done(10)
	_, acked = take()
	require.Equal(t, ids.Sequence(started), acked)
	n.done(first)
	_, acked = take()
	require.Equal(t, first, acked)
	require.Equal(t, ids.Sequence(started)+9, sequenceAfter(ids.Sequence(started)+9, started).last, "of a process that was busy")
}

func TestSequenceWaitsForRoom(t *testing.T) {
	const started = 5 * time.Hour
	n := sequenceAfter(10, started)
	n.reopen(10) // of what earlier processes had under way, no more is to wait than that
	first, _ := n.take(func(ids.Sequence) {})
	for range maxAhead - 1 {
		require.NoError(t, n.await(t.Context()))
		seq, _ := n.take(func(ids.Sequence) {})
		n.done(seq)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, n.await(gone), context.Canceled)
	waited := make(chan error)
	go func() { waited <- n.await(t.Context()) }()
	n.done(10)
	require.ErrorIs(t, n.await(gone), context.Canceled, "the first is still to come")
	n.done(first)
	require.NoError(t, <-waited)
}
