package session

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/storepb"
	"lockfs/test/fuzzing"
)

// FuzzJournal reads what a process may have left in its journal: its header, its calls, whose session it is, and its waits. Whatever that is,
// a successor knows which numbers not to take, and goes on.
func FuzzJournal(f *testing.F) {
	const boot = "0123456789-boot"
	j, _, _, err := openJournal("", boot)
	require.NoError(f, err)
	copy(j.data[journalBootID:], boot)
	j.word(0).Store(journalMagic)
	j.adopt(7, 41)
	j.belong("cluster")
	j.begin(0, 7, 42)
	j.promise(1, 99, []byte("answer"))
	j.beginWait(7, 42, &storepb.TakeLock{Ino: 3, Owner: 5, End: 9, Type: storepb.LockType_EXCLUSIVE})
	part := func(at, length int) []byte { return append([]byte(nil), j.data[at:at+length]...) }
	f.Add(part(0, journalHeader), part(journalHeader, 2*journalSlot), part(journalCluster, 8+journalIDLen), part(journalWaits, 8+2*waitSlot))
	f.Add([]byte(nil), []byte(nil), []byte(nil), []byte(nil))
	fuzzing.Run(f, func(t *testing.T, header, calls, cluster, waits []byte) {
		clear(j.data)
		j.waiting, j.answered = waitSlots{}, nil
		copy(j.data, header[:min(len(header), journalHeader)])
		copy(j.data[journalHeader:journalCluster], calls)
		copy(j.data[journalCluster:journalWaits], cluster)
		copy(j.data[journalWaits:], waits)
		left := j.read(boot)
		require.LessOrEqual(t, len(left.cluster), journalIDLen)
		for _, call := range left.pending {
			require.NotZero(t, call.seq)
			require.True(t, call.session != left.session || call.seq <= left.last, "a number is taken twice")
		}
		answers, slots := j.promises()
		require.Len(t, slots, len(answers))
		for _, answer := range answers {
			require.LessOrEqual(t, len(answer), journalSlot-journalAnswer)
		}
		j.keepPromises()
		waited := j.readWaits()
		j.adoptWaits()
		const fresh = 1 << 63
		j.beginWait(fresh, fresh, new(storepb.TakeLock))
		if len(waited) < mostWaits {
			require.Len(t, j.readWaits(), len(waited)+1, "what was noted before is kept")
		} else {
			require.True(t, j.lacksWaits())
		}
		j.endWait(fresh, fresh)
		require.LessOrEqual(t, len(j.readWaits()), len(waited))
		j.belong("another")
	})
}
