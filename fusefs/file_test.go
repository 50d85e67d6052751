package fusefs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

func TestAppendsOfTwoMountsLoseNothing(t *testing.T) {
	c := newCluster()
	here, _ := mountFor(t, c)
	there, _ := mountFor(t, c)
	const writers, lines = 4, 40
	var group sync.WaitGroup
	for writer := range writers {
		f := openFile(t, filepath.Join([]string{here, there}[writer%2], "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY)
		group.Go(func() {
			for line := range lines {
				if _, err := fmt.Fprintf(f, "%d %d\n", writer, line); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	got := strings.Split(strings.TrimSpace(readFile(t, filepath.Join(here, "log"))), "\n")
	require.Len(t, got, writers*lines)
	next := make(map[int]int)
	for _, text := range got {
		var writer, line int
		_, err := fmt.Sscanf(text, "%d %d", &writer, &line)
		require.NoError(t, err, text)
		require.Equal(t, next[writer], line, "the lines of one writer stay in order")
		next[writer]++
	}
}

func TestWriteIsSeenElsewhereAtOnce(t *testing.T) {
	c := newCluster()
	here, _ := mountFor(t, c)
	there, _ := mountFor(t, c)
	writer := openFile(t, filepath.Join(here, "f"), os.O_CREATE|os.O_RDWR)
	reader := openFile(t, filepath.Join(there, "f"), os.O_RDONLY)
	for round := range 20 {
		text := fmt.Sprintf("round %3d", round)
		_, err := writer.WriteAt([]byte(text), 0)
		require.NoError(t, err)
		got := make([]byte, len(text))
		_, err = reader.ReadAt(got, 0)
		require.NoError(t, err)
		require.Equal(t, text, string(got))
	}
}

func TestWritePlaces(t *testing.T) {
	dir, _ := mountFor(t, newCluster())
	f := openFile(t, filepath.Join(dir, "f"), os.O_CREATE|os.O_RDWR)
	for _, step := range []struct {
		offset int64
		data   string
		want   string
	}{
		{0, "hello", "hello"},
		{1, "a", "hallo"},
		{7, "x", "hallo\x00\x00x"},
		{0, "", "hallo\x00\x00x"},
	} {
		_, err := f.WriteAt([]byte(step.data), step.offset)
		require.NoError(t, err)
		require.Equal(t, step.want, readFile(t, f.Name()))
	}
}

func TestLargestFile(t *testing.T) {
	dir, _ := mountFor(t, newCluster())
	path := filepath.Join(dir, "f")
	full := []byte(strings.Repeat("0123456789abcdef", namespace.MaxContent/16))
	require.NoError(t, os.WriteFile(path, full, 0o644))
	require.Equal(t, string(full), readFile(t, path))

	f := openFile(t, path, os.O_RDWR)
	for _, offset := range []int64{namespace.MaxContent, 1 << 40} {
		_, err := f.WriteAt([]byte("x"), offset)
		require.ErrorIs(t, err, syscall.EFBIG)
	}
	_, err := f.WriteAt(make([]byte, 2<<20), 0)
	require.ErrorIs(t, err, syscall.EFBIG, "nothing of a write that is too large is done")
	_, err = openFile(t, path, os.O_WRONLY|os.O_APPEND).WriteString("x")
	require.ErrorIs(t, err, syscall.EFBIG)
	require.ErrorIs(t, f.Truncate(namespace.MaxContent+1), syscall.EFBIG)
	require.ErrorIs(t, syscall.Fallocate(int(f.Fd()), 0, 0, namespace.MaxContent+1), syscall.EFBIG)
	require.Equal(t, string(full), readFile(t, path))
}

// What this mount knows may be outdated: it must not refuse an append to a file that was emptied elsewhere.
func TestRefusalJudgesWhatIsCommitted(t *testing.T) {
	c := newCluster()
	here, _ := mountFor(t, c)
	there, _ := mountFor(t, c)
	f := openFile(t, filepath.Join(here, "f"), os.O_CREATE|os.O_WRONLY|os.O_APPEND)
	_, err := f.Write(make([]byte, namespace.MaxContent))
	require.NoError(t, err)
	require.NoError(t, os.Truncate(filepath.Join(there, "f"), 0))
	_, err = f.WriteString("x")
	require.NoError(t, err)
	require.Equal(t, "x", readFile(t, filepath.Join(there, "f")))
}

func TestTruncate(t *testing.T) {
	dir, _ := mountFor(t, newCluster())
	path := writeFile(t, dir, "f", "hello")
	f := openFile(t, path, os.O_RDWR)
	require.NoError(t, f.Truncate(2))
	require.Equal(t, "he", readFile(t, path))
	require.NoError(t, os.Truncate(path, 4))
	require.Equal(t, "he\x00\x00", readFile(t, path))

	past := time.Unix(1000, 0)
	for _, truncate := range []func() error{
		func() error { return os.Truncate(path, 4) },
		func() error { return f.Truncate(4) },
	} {
		require.NoError(t, os.Chtimes(path, past, past))
		before := lstat(t, path)
		require.NoError(t, truncate())
		after := lstat(t, path)
		require.Greater(t, after.Mtim.Nano(), before.Mtim.Nano(), "also when the size stays")
		require.Greater(t, after.Ctim.Nano(), before.Ctim.Nano())
		require.Equal(t, before.Atim, after.Atim)
	}
}

func TestFallocate(t *testing.T) {
	dir, _ := mountFor(t, newCluster())
	f := openFile(t, writeFile(t, dir, "f", "hello"), os.O_RDWR)
	fd := int(f.Fd())
	require.NoError(t, syscall.Fallocate(fd, 0, 0, 3))
	require.Equal(t, "hello", readFile(t, f.Name()))
	require.NoError(t, syscall.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, 0, 100))
	require.Equal(t, "hello", readFile(t, f.Name()))
	require.NoError(t, syscall.Fallocate(fd, 0, 4, 3))
	require.Equal(t, "hello\x00\x00", readFile(t, f.Name()))
	for _, hole := range []uint32{unix.FALLOC_FL_PUNCH_HOLE, unix.FALLOC_FL_ZERO_RANGE} {
		require.NoError(t, syscall.Fallocate(fd, hole|unix.FALLOC_FL_KEEP_SIZE, 4, 100))
		require.Equal(t, "hell\x00\x00\x00", readFile(t, f.Name()))
		_, err := f.WriteAt([]byte("o"), 4)
		require.NoError(t, err)
	}
	require.NoError(t, syscall.Fallocate(fd, unix.FALLOC_FL_ZERO_RANGE, 1, 8))
	require.Equal(t, "h"+strings.Repeat("\x00", 8), readFile(t, f.Name()))
	require.ErrorIs(t, syscall.Fallocate(fd, unix.FALLOC_FL_COLLAPSE_RANGE, 0, 1), syscall.EOPNOTSUPP)
}

func TestSeekDataAndHole(t *testing.T) {
	dir, _ := mountFor(t, newCluster())
	f := openFile(t, writeFile(t, dir, "f", "hello"), os.O_RDWR)
	for _, row := range []struct {
		offset int64
		whence int
		want   int64
		err    error
	}{
		{0, unix.SEEK_DATA, 0, nil},
		{3, unix.SEEK_DATA, 3, nil},
		{5, unix.SEEK_DATA, 0, syscall.ENXIO},
		{0, unix.SEEK_HOLE, 5, nil},
		{4, unix.SEEK_HOLE, 5, nil},
		{5, unix.SEEK_HOLE, 0, syscall.ENXIO},
		{-1, unix.SEEK_END, 4, nil},
	} {
		got, err := unix.Seek(int(f.Fd()), row.offset, row.whence)
		if row.err != nil {
			require.ErrorIs(t, err, row.err, "%+v", row)
			continue
		}
		require.NoError(t, err, "%+v", row)
		require.Equal(t, row.want, got, "%+v", row)
	}
}

func TestConflictingWritesAreWorkedOutAnew(t *testing.T) {
	c := newCluster()
	here, s := mountFor(t, c)
	there, _ := mountFor(t, c)
	f := openFile(t, filepath.Join(here, "f"), os.O_CREATE|os.O_WRONLY|os.O_APPEND)
	var interfered atomic.Int32
	s.intercept(func(op *storepb.Op, _ *storepb.Query) (*storepb.Result, bool, error) {
		if op.GetSetContent() != nil && interfered.Add(1) <= 3 {
			shell(t, there, "printf ! >>f")
		}
		return nil, false, nil
	})
	_, err := f.WriteString("mine")
	require.NoError(t, err)
	require.Equal(t, "!!!mine", readFile(t, filepath.Join(there, "f")))
}

func TestCopies(t *testing.T) {
	dir, _ := mountFor(t, newCluster())
	writeFile(t, dir, "f", "hello")
	require.Equal(t, "hello", shell(t, dir, "cp -a f g && dd if=g of=h bs=2 conv=fsync status=none && sync h . && cat h"))
}
