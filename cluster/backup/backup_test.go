package backup

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/codec"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
	"lockfs/test/fuzzing"
)

// someState has so many files.
func someState(t testing.TB, files int) *namespace.Namespace {
	t.Helper()
	ns := namespace.New()
	for i := range files {
		result := ns.Apply(ids.Index(i+1), &storepb.Command{Time: int64(time.Hour), Op: &storepb.Op{Op: &storepb.Op_Create{Create: &storepb.Create{
			Parent: namespace.RootIno, Name: fmt.Append(nil, i), Mode: syscall.S_IFREG | 0o644, Exclusive: true,
		}}}, Session: 1, Seq: uint64(i)})
		if i == 0 {
			require.Equal(t, storepb.Code_SESSION_FORGOTTEN, result.GetCode())
			ns.Apply(1, &storepb.Command{Session: 1, Op: &storepb.Op{Op: &storepb.Op_OpenSession{OpenSession: &storepb.OpenSession{Host: "h"}}}})
			continue
		}
		require.Equal(t, storepb.Code_OK, result.GetCode(), result.GetMessage())
	}
	return ns
}

func someBackup(t testing.TB) ([]byte, *namespace.Namespace) {
	t.Helper()
	state := someState(t, 12)
	var out bytes.Buffer
	require.NoError(t, Write(&out, Header{Node: "a", Program: "v1", Term: 3, Made: time.Unix(7, 0).UTC()}, state.Snapshot()))
	return out.Bytes(), state
}

func TestWhatIsReadIsWhatWasWritten(t *testing.T) {
	content, state := someBackup(t)
	h, read, err := Read(iotest.OneByteReader(bytes.NewReader(content)))
	require.NoError(t, err)
	require.Equal(t, state.Snapshot().Hash(), read.Snapshot().Hash())
	require.Equal(t, 11, read.Counts()["names"])
	require.Equal(t, &Header{
		Version: 1, Node: "a", Program: "v1", Made: time.Unix(7, 0).UTC(), Index: 12, Term: 3, ClusterTime: time.Unix(3600, 0).UTC(), Length: h.Length,
	}, h)
	checked, err := Check(bytes.NewReader(content))
	require.NoError(t, err)
	require.Equal(t, h, checked)
}

// TestNoPartOfABackupIsTakenForOne cuts it everywhere, changes each byte, and has the reader fail.
func TestNoPartOfABackupIsTakenForOne(t *testing.T) {
	content, _ := someBackup(t)
	read := func(content []byte) []error {
		_, _, err := Read(bytes.NewReader(content))
		_, checked := Check(bytes.NewReader(content))
		return []error{err, checked}
	}
	for cut := range len(content) {
		for _, err := range read(content[:cut]) {
			require.Error(t, err, "cut at %d", cut)
		}
		changed := bytes.Clone(content)
		changed[cut] ^= 4
		for _, err := range read(changed) {
			require.Error(t, err, "changed at %d", cut)
		}
	}
	for _, err := range read(append(bytes.Clone(content), 0)) {
		require.ErrorIs(t, err, ErrDamaged)
	}
	for _, err := range read(bytes.Replace(content, []byte(`"version":1`), []byte(`"version":2`), 1)) {
		require.ErrorIs(t, err, codec.ErrNewer)
	}
	failure := errors.New("the disk")
	for _, at := range []int{0, 5, 40, len(content) / 2, len(content) - 5} {
		broken := io.MultiReader(bytes.NewReader(content[:at]), iotest.ErrReader(failure))
		_, _, err := Read(broken)
		require.ErrorIs(t, err, failure)
		require.NotErrorIs(t, err, ErrDamaged)
	}
}

// TestAFileIsThereAsAWholeOnly fails while it is written, and has other content on disk than was written.
func TestAFileIsThereAsAWholeOnly(t *testing.T) {
	content, _ := someBackup(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "backup")
	whole := func(w io.Writer) error { _, err := w.Write(content); return err }
	failure := errors.New("no more")
	fails := map[string]func(io.Writer) error{
		"an error": func(w io.Writer) error { return errors.Join(whole(w), failure) },
		"cut":      func(w io.Writer) error { _, err := w.Write(content[:100]); return err },
	}
	for _, before := range []string{"", "of before"} {
		if before != "" {
			require.NoError(t, os.WriteFile(path, []byte(before), 0o600))
		}
		for what, write := range fails {
			_, err := Create(path, write)
			require.ErrorContains(t, err, path, what)
			found, _ := os.ReadFile(path)
			require.Equal(t, before, string(found), what)
		}
	}
	h, err := Create(path, whole)
	require.NoError(t, err)
	require.Equal(t, uint64(12), h.Index)
	found, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, content, found)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

// FuzzRead gives a reader anything: what it takes is a state that can be written again.
func FuzzRead(f *testing.F) {
	content, _ := someBackup(f)
	f.Add(content)
	f.Add(content[:len(content)/2])
	f.Add([]byte(magic + "{}\n"))
	fuzzing.Run(f, func(t *testing.T, content []byte) {
		h, state, err := Read(bytes.NewReader(content))
		if err != nil {
			return
		}
		var again bytes.Buffer
		require.NoError(t, Write(&again, *h, state.Snapshot()))
		_, _, err = Read(&again)
		require.NoError(t, err)
	})
}
