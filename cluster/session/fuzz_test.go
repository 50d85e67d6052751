package session

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/fuzzing"
)

// FuzzJournal reads what a process may have left in its journal: its header, its calls, whose session it is, and whether it was handed over. Whatever that is,
// a successor knows which numbers not to take, and goes on.
func FuzzJournal(f *testing.F) {
	const boot = "0123456789-boot"
	j, _, _, err := openJournal("", boot)
	require.NoError(f, err)
	copy(j.data[journalBootID:], boot)
	j.word(0).Store(journalMagic)
	j.adopt(7, 41)
	j.bind("cluster")
	j.begin(0, 7, 42)
	j.promise(1, 99, []byte("answer"))
	part := func(at, length int) []byte { return append([]byte(nil), j.data[at:at+length]...) }
	f.Add(part(0, journalHeader), part(journalHeader, 2*journalSlot), part(journalCluster, journalSize-journalCluster))
	f.Add([]byte(nil), []byte(nil), []byte(nil))
	fuzzing.Run(f, func(t *testing.T, header, calls, rest []byte) {
		clear(j.data)
		j.answered = nil
		copy(j.data, header[:min(len(header), journalHeader)])
		copy(j.data[journalHeader:journalCluster], calls)
		copy(j.data[journalCluster:], rest)
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
		j.bind("another")
	})
}
