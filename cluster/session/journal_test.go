package session

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/ids"
)

// TestSequenceOfAKilledProcess ends a process after each of the stores with which a call begins. Its successor takes no number that may
// have been used, and voids the call once it may have been sent.
func TestSequenceOfAKilledProcess(t *testing.T) {
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

// TestAJournalOfAnotherBoot has nothing for this one: its processes are gone, and with them what they had open.
func TestAJournalOfAnotherBoot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, _, _, err := openJournal(path, "boot")
	require.NoError(t, err)
	j.adopt(7, 41)
	require.NoError(t, j.letGo())
	j, left, _, err := openJournal(path, "another boot")
	require.NoError(t, err)
	require.Equal(t, new(journalState), left)
	require.Zero(t, j.word(8).Load())
	require.NoError(t, j.letGo())
}

// TestAJournalOfAnEarlierProgramGrows to what this one writes.
func TestAJournalOfAnEarlierProgramGrows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	require.NoError(t, os.WriteFile(path, make([]byte, journalCluster), 0o600))
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	j := &journal{file: file}
	require.NoError(t, j.grow())
	info, err := file.Stat()
	require.NoError(t, err)
	require.EqualValues(t, journalSize, info.Size())
	require.NoError(t, j.letGo())
}

// TestAJournalOfThatNameIsAnotherFile once it was removed or made anew, by whoever had locked it before.
func TestAJournalOfThatNameIsAnotherFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, err := lockJournal(path, os.O_CREATE)
	require.NoError(t, err)
	require.NoError(t, j.isStillThere())
	require.NoError(t, os.Remove(path))
	require.ErrorIs(t, j.isStillThere(), syscall.EWOULDBLOCK)
	other, err := lockJournal(path, os.O_CREATE)
	require.NoError(t, err)
	require.ErrorIs(t, j.isStillThere(), syscall.EWOULDBLOCK)
	require.NoError(t, other.isStillThere())
	require.NoError(t, other.letGo())
	require.NoError(t, j.letGo())
}

// TestAnAnswerFillsItsSlot and no other's.
func TestAnAnswerFillsItsSlot(t *testing.T) {
	j, _, _, err := openJournal("", "boot")
	require.NoError(t, err)
	long := func(of byte) []byte { return bytes.Repeat([]byte{of}, journalSlot-journalAnswer) }
	for _, slot := range []int{1, 3, 2} {
		j.promise(slot, uint32(slot), long(byte(slot)))
	}
	j.promise(4, 4, append(long(4), 4))
	answers, slots := j.promises()
	require.Equal(t, [][]byte{long(1), long(2), long(3)}, answers)
	require.Equal(t, []int{1, 2, 3}, slots)
	j.goesOn(2)
	_, slots = j.promises()
	require.Equal(t, []int{1, 3}, slots)

	successor := &journal{data: j.data}
	require.Equal(t, map[int]bool{1: true, 3: true}, successor.keepPromises())
	successor.goesOn(3)
	_, slots = j.promises()
	require.Equal(t, []int{1}, slots)
}
