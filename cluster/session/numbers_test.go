package session

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"lockfs/raftstore/ids"
)

func TestNumbersAcknowledgeOnlyWhatIsDone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		last := ids.Sequence(rapid.Uint64Range(0, 5).Draw(t, "last"))
		open := make(map[ids.Sequence]bool)
		n := newNumbers(last)
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
