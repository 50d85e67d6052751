package session

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/ids"
)

// TestNumbersOfAKilledProcess ends a process after each of the stores with which a call begins. Its successor takes no number that may
// have been used, and voids the call once it may have been sent.
func TestNumbersOfAKilledProcess(t *testing.T) {
	const session, last, next = ids.Session(7), ids.Sequence(41), ids.Sequence(42)
	for stores, want := range []struct {
		last    ids.Sequence
		pending []pendingCall
	}{
		{last, nil}, // the answer of the call before in this slot is taken back
		{last, nil}, // the session is noted
		{next, []pendingCall{{callNumber{session, next}, 3}}},
		{next, []pendingCall{{callNumber{session, next}, 3}}}, // the number is noted as the last
	} {
		path := filepath.Join(t.TempDir(), "journal")
		j, _, _, err := openJournal(path, "boot")
		require.NoError(t, err)
		j.adopt(session, last)
		inSession, number := j.slot(3)
		for i, store := range []func(){
			func() { j.promised(3).Store(0) },
			func() { inSession.Store(uint64(session)) },
			func() { number.Store(uint64(next)) },
			func() { j.word(16).Store(uint64(next)) },
		} {
			if i <= stores {
				store()
			}
		}
		require.NoError(t, j.letGo())
		successor, left, others, err := openJournal(path, "boot")
		require.NoError(t, err)
		require.Empty(t, others)
		require.Equal(t, session, left.session)
		require.Equal(t, want.last, left.last, "after %d stores", stores+1)
		require.Equal(t, want.pending, left.pending, "after %d stores", stores+1)
		require.NoError(t, successor.letGo())
	}
}
