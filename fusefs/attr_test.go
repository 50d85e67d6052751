package fusefs

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"lockfs/fusefs/fuseattr"
	"lockfs/fusefs/thread"
	"lockfs/raftstore/hostinfo"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

func TestTimesToTheNanosecond(t *testing.T) {
	c := newCluster()
	here, _ := mountFor(t, c)
	there, _ := mountFor(t, c)
	writeFile(t, here, "file", "")
	require.NoError(t, os.Mkdir(filepath.Join(here, "dir"), 0o755))
	require.NoError(t, os.Symlink("nowhere", filepath.Join(here, "link")))
	for _, name := range []string{"file", "dir", "link"} {
		for _, ns := range []int64{1_234_567_890_123_456_789, -1, 0, 9_000_000_000_000_000_001} {
			times := []unix.Timespec{unix.NsecToTimespec(ns), unix.NsecToTimespec(ns + 2)}
			path := filepath.Join(here, name)
			require.NoError(t, unix.UtimesNanoAt(unix.AT_FDCWD, path, times, unix.AT_SYMLINK_NOFOLLOW))
			st := lstat(t, filepath.Join(there, name))
			require.Equal(t, ns, st.Atim.Nano(), name)
			require.Equal(t, ns+2, st.Mtim.Nano(), name)
		}
	}
}

func TestTimeNowIsTheClusters(t *testing.T) {
	dir, _ := mountFor(t, newCluster())
	path := writeFile(t, dir, "f", "")
	require.NoError(t, os.Chtimes(path, time.Unix(1, 0), time.Unix(2, 0)))
	omit := unix.Timespec{Nsec: unix.UTIME_OMIT}
	now := unix.Timespec{Nsec: unix.UTIME_NOW}

	before := time.Now().UnixNano()
	require.NoError(t, unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{omit, now}, 0))
	st := lstat(t, path)
	require.EqualValues(t, 1, st.Atim.Sec)
	require.GreaterOrEqual(t, st.Mtim.Nano(), before)
	require.NoError(t, unix.UtimesNanoAt(unix.AT_FDCWD, path, nil, 0))
	require.Equal(t, lstat(t, path).Mtim, lstat(t, path).Atim)

	readFile(t, path)
	require.Equal(t, lstat(t, path).Mtim, lstat(t, path).Atim, "reading changes nothing")
}

func TestModeAndOwner(t *testing.T) {
	dir, _ := mountFor(t, newCluster())
	path := writeFile(t, dir, "f", "hello")
	require.NoError(t, os.Chmod(path, 0o4751))
	require.NoError(t, os.Chown(path, 7, -1))
	require.NoError(t, os.Chown(path, -1, 8))
	require.Equal(t, "751 7 8 5 1 4096", shell(t, dir, "stat -c '%a %u %g %s %b %o' f"), "chown takes set-user-ID away")

	require.NoError(t, os.Chmod(path, 0o600))
	output, err := runAs(t, nobody, dir, "cat", "f")
	require.Error(t, err)
	require.Contains(t, output, "Permission denied")
	_, err = runAs(t, nobody, dir, "chmod", "777", "f")
	require.Error(t, err)
	output, err = runAs(t, nobody, dir, "sh", "-c", "umask 022; mkdir d; touch d/f; stat -c '%u %g %a' d d/f")
	require.NoError(t, err, output)
	require.Equal(t, "65534 65534 755\n65534 65534 644", output)
}

func TestTimeOfBirth(t *testing.T) {
	dir, _ := mountFor(t, newCluster())
	before := time.Now()
	path := writeFile(t, dir, "f", "hello")
	require.NoError(t, os.Chtimes(path, time.Unix(1, 0), time.Unix(2, 0)))
	var born unix.Statx_t
	require.NoError(t, unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_ALL, &born))
	require.NotZero(t, born.Mask&unix.STATX_BTIME)
	at := time.Unix(born.Btime.Sec, int64(born.Btime.Nsec))
	require.WithinRange(t, at, before, time.Now())
	require.EqualValues(t, 2, born.Mtime.Sec)
	require.EqualValues(t, 5, born.Size)
	require.Equal(t, lstat(t, path).Ino, born.Ino)
	require.NotEqual(t, "0", shell(t, dir, "stat -c %W f"))
	require.NotEqual(t, "-", shell(t, dir, "stat -c %w ."))
}

func TestInodeIsGone(t *testing.T) {
	dir, s := mountFor(t, newCluster())
	f := openFile(t, writeFile(t, dir, "f", "hello"), os.O_RDWR)
	s.mu.Lock()
	s.ns, s.index = newCluster().ns, 0 // nothing is left of it
	s.apply(&storepb.Command{Session: s.id, Op: &storepb.Op{Op: &storepb.Op_OpenSession{OpenSession: &storepb.OpenSession{}}}})
	s.mu.Unlock()
	_, err := f.Stat()
	require.ErrorIs(t, err, syscall.ESTALE)
	_, err = f.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ESTALE)
	_, err = f.WriteString("x")
	require.ErrorIs(t, err, syscall.ESTALE)
	require.ErrorIs(t, f.Chmod(0o600), syscall.ESTALE)
	_, err = os.Stat(filepath.Join(dir, "f"))
	require.ErrorIs(t, err, syscall.ENOENT)
}

func TestStatFs(t *testing.T) {
	dir, _ := mountFor(t, newCluster())
	writeFile(t, dir, "f", "hello")
	var st unix.Statfs_t
	require.NoError(t, unix.Statfs(dir, &st))
	require.EqualValues(t, fuseattr.BlockSize, st.Bsize)
	require.EqualValues(t, 255, st.Namelen)
	require.Equal(t, st.Files-2, st.Ffree)
	require.NotZero(t, st.Bavail)
	require.Equal(t, st.Blocks-1, st.Bfree)
}

func TestWritingDropsSetUserID(t *testing.T) {
	dir, _ := mountFor(t, newCluster())
	for name, script := range map[string]string{
		"write":    "printf x >>f",
		"truncate": "truncate -s 1 f",
		"open":     "exec 3<>f; : >f",
	} {
		t.Run(name, func(t *testing.T) {
			shell(t, dir, "printf hello >f; chmod 6777 f; "+script)
			require.Equal(t, "6777", shell(t, dir, "stat -c %a f"), "root may set them, so they stay")
			output, err := runAs(t, nobody, dir, "sh", "-c", script)
			require.NoError(t, err, output)
			require.Equal(t, "777", shell(t, dir, "stat -c %a f"))
		})
	}
}

// TestWhatWasCreatedIsToldThoughTheKernelAsksLate: the open(2) that made a file fails if its attributes
// cannot be had, and the file would stay.
func TestWhatWasCreatedIsToldThoughTheKernelAsksLate(t *testing.T) {
	const by = 1 << 30 // no thread
	c := newCluster()
	s := c.open()
	fs := newFileSystem(s, Options{Logger: slog.New(slog.DiscardHandler)})
	result, err := s.Mutate(t.Context(), &storepb.Caller{}, &storepb.Op{Op: &storepb.Op_Create{Create: &storepb.Create{
		Parent: uint64(namespace.RootIno), Name: []byte("lock"), Mode: syscall.S_IFREG | 0o600, Exclusive: true,
	}}})
	require.NoError(t, err)
	ino := result.GetAttr().GetIno()
	var attr fuse.Attr
	fuseattr.FillAttr(&attr, result.GetAttr())
	before := false
	askAs := func(by uint32, age time.Duration) (*fuse.AttrOut, syscall.Errno) {
		fs.calls.created.Restore([]thread.Saved[made]{{Thread: by, Value: made{attr, before}, At: hostinfo.BootTime() - age}})
		in, out := new(fuse.GetAttrIn), new(fuse.AttrOut)
		in.NodeId, in.Pid = ino, by
		return out, syscall.Errno(fs.GetAttr(nil, in, out))
	}
	ask := func(age time.Duration) (*fuse.AttrOut, syscall.Errno) { return askAs(by, age) }
	var answer *storepb.Result
	var silence error
	s.intercept(func(_ *storepb.Op, query *storepb.Query) (*storepb.Result, bool, error) {
		return answer, query.GetGetAttr() != nil, silence
	})

	silence = context.DeadlineExceeded
	for _, age := range []time.Duration{0, newFileAge, time.Hour} {
		out, errno := ask(age)
		require.Zero(t, errno, age)
		require.EqualValues(t, ino, out.Ino)
		require.EqualValues(t, syscall.S_IFREG|0o600, out.Mode)
	}
	answer, silence = &storepb.Result{Attr: &storepb.Attr{Ino: ino, Mode: syscall.S_IFREG | 0o644}}, nil
	out, errno := ask(newFileAge)
	require.Zero(t, errno)
	require.EqualValues(t, syscall.S_IFREG|0o644, out.Mode, "what is newer is better")
	before = true
	out, errno = ask(0)
	require.Zero(t, errno)
	require.EqualValues(t, syscall.S_IFREG|0o644, out.Mode, "also just now, if it may have been told already")
	before = false
	answer = &storepb.Result{Code: storepb.Code_NOT_FOUND}
	_, errno = ask(newFileAge)
	require.Equal(t, syscall.ESTALE, errno, "somebody has removed it: the kernel begins anew")
	answer, silence = nil, context.DeadlineExceeded
	in, again := new(fuse.GetAttrIn), new(fuse.AttrOut)
	in.NodeId, in.Pid = ino, by
	require.Equal(t, syscall.ETIMEDOUT, syscall.Errno(fs.GetAttr(nil, in, again)), "once")

	fs.calls.created.Note(by, made{attr: attr})
	fs.asks(&fuse.InHeader{Opcode: opGetXAttr, NodeId: ino, Caller: fuse.Caller{Pid: by}})
	require.Zero(t, fs.GetAttr(nil, in, again), "audit(7) asks for capabilities within that call")

	fs.calls.created.Note(by, made{attr: attr})
	fs.asks(&fuse.InHeader{Opcode: opSetAttr, NodeId: ino, Caller: fuse.Caller{Pid: by}})
	require.Equal(t, syscall.ETIMEDOUT, syscall.Errno(fs.GetAttr(nil, in, again)), "the call that made it is over")
	other := exec.Command("sleep", "1h")
	require.NoError(t, other.Start())
	t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
	eventually(t, "a thread that is in another call, which is over for it, is told what the cluster says", func() bool {
		_, errno := askAs(uint32(other.Process.Pid), newFileAge)
		return errno == syscall.ETIMEDOUT
	})
}
