package session

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/version/goldendata"
)

const keptBoot = "01234567-89ab-4cde-8f01-23456789abcd"

// TestKeptJournalsAreRead has the journal that a mount of each version has left when it was killed. Without
// its end, which is empty, it is small.
func TestKeptJournalsAreRead(t *testing.T) {
	write := func(dir string) {
		path := filepath.Join(t.TempDir(), "journal")
		j, left, _, err := openJournal(path, keptBoot)
		require.NoError(t, err)
		require.Zero(t, left.session)
		j.adopt(7, 40)
		j.begin(0, 7, 41)
		j.begin(1, 7, 42)
		j.begin(2, 6, 43)
		j.promise(1, 99, []byte("answer"))
		j.end(0)
		require.NoError(t, j.close())
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "journal"), bytes.TrimRight(data, "\x00"), 0o644))
	}
	goldendata.Each(t, write, func(t *testing.T, _ uint32, dir string) {
		data, err := os.ReadFile(filepath.Join(dir, "journal"))
		require.NoError(t, err)
		path := filepath.Join(t.TempDir(), "journal")
		require.NoError(t, os.WriteFile(path, append(data, make([]byte, journalSize-len(data))...), 0o600))
		file, err := lockJournal(path, 0)
		require.NoError(t, err)
		answers, _ := file.promises()
		require.Equal(t, [][]byte{[]byte("answer")}, answers)
		require.NoError(t, file.letGo())
		j, left, _, err := openJournal(path, keptBoot)
		require.NoError(t, err)
		require.Equal(t, &journalState{session: 7, last: 43, pending: []pendingCall{{callNumber{7, 42}, 1}, {callNumber{6, 43}, 2}}}, left)
		require.NoError(t, j.close())
	})
}
