package fusefs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/storepb"
)

func TestXattrs(t *testing.T) {
	c := newCluster()
	here, _ := mountFor(t, c)
	there, _ := mountFor(t, c)
	path := filepath.Join(here, "f")
	openFile(t, path, os.O_CREATE|os.O_EXCL)
	elsewhere := filepath.Join(there, "f")

	require.NoError(t, unix.Setxattr(path, "user.b", []byte("hello"), 0))
	require.NoError(t, unix.Setxattr(path, "user.a", nil, unix.XATTR_CREATE))
	require.ErrorIs(t, unix.Setxattr(path, "user.b", nil, unix.XATTR_CREATE), syscall.EEXIST)
	require.ErrorIs(t, unix.Setxattr(path, "user.c", nil, unix.XATTR_REPLACE), syscall.ENODATA)

	buffer := make([]byte, 100)
	size, err := unix.Getxattr(elsewhere, "user.b", buffer)
	require.NoError(t, err)
	require.Equal(t, "hello", string(buffer[:size]))
	size, err = unix.Getxattr(elsewhere, "user.b", nil)
	require.NoError(t, err, "asking for the size")
	require.Equal(t, 5, size)
	_, err = unix.Getxattr(elsewhere, "user.b", buffer[:4])
	require.ErrorIs(t, err, syscall.ERANGE)
	size, err = unix.Getxattr(elsewhere, "user.a", buffer)
	require.NoError(t, err)
	require.Zero(t, size)

	names := listXattrs(t, elsewhere)
	require.Equal(t, []string{"user.a", "user.b"}, names, "what describes a lock is not listed")
	require.NotEmpty(t, lockXattrsOf(t, elsewhere)["state"])
	_, err = unix.Listxattr(elsewhere, buffer[:10])
	require.ErrorIs(t, err, syscall.ERANGE)

	require.NoError(t, unix.Removexattr(elsewhere, "user.b"))
	require.ErrorIs(t, unix.Removexattr(path, "user.b"), syscall.ENODATA)
	_, err = unix.Getxattr(path, "user.b", buffer)
	require.ErrorIs(t, err, syscall.ENODATA)
	require.ErrorIs(t, unix.Setxattr(path, "user.big", make([]byte, 5000), 0), syscall.ENOSPC)
	require.NoError(t, unix.Setxattr(here, "user.dir", []byte("too"), 0))
}

func listXattrs(t testing.TB, path string) []string {
	t.Helper()
	size, err := unix.Llistxattr(path, nil)
	require.NoError(t, err)
	buffer := make([]byte, size)
	size, err = unix.Llistxattr(path, buffer)
	require.NoError(t, err)
	require.Equal(t, len(buffer), size)
	if size == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(buffer), "\x00"), "\x00")
}

// lockXattrsOf returns the attributes that describe a lock, without their common prefix.
func lockXattrsOf(t testing.TB, path string) map[string]string {
	t.Helper()
	values := make(map[string]string)
	for _, name := range []string{"state", "format", "holder", "host", "pid", "token", "acquired", "renewed", "expires", "watched"} {
		buffer := make([]byte, 300)
		size, err := unix.Getxattr(path, "user.lockfs."+name, buffer)
		if errors.Is(err, syscall.ENODATA) {
			continue
		}
		require.NoError(t, err, name)
		values[name] = string(buffer[:size])
	}
	return values
}

func TestLockXattrs(t *testing.T) {
	dir, c := mountWithFacts(t)
	path := writeFile(t, dir, "swarm", swarmLock)
	require.NoError(t, os.Chtimes(path, time.Unix(0, 0), time.Unix(0, 1)))
	values := lockXattrsOf(t, path)
	require.NotEmpty(t, values["token"])
	acquired, err := time.Parse(time.RFC3339Nano, values["acquired"])
	require.NoError(t, err)
	require.InDelta(t, time.Now().Unix(), acquired.Unix(), 60)
	require.Equal(t, map[string]string{
		"state": "held", "format": "swarm", "holder": "worker 1", "host": "host", "token": values["token"],
		"acquired": values["acquired"], "renewed": "1970-01-01T00:00:00.000000001Z", "expires": "2100-01-02T00:00:00.999999999Z",
	}, values)

	shell(t, dir, "mkdir d; mkfifo fifo; ln -s x link; ln swarm zz; echo 7 >pid")
	ofDir := lockXattrsOf(t, filepath.Join(dir, "d"))
	require.Equal(t, "none", ofDir["format"])
	for _, absent := range []string{"holder", "pid", "expires"} {
		require.NotContains(t, ofDir, absent)
		_, err = unix.Getxattr(filepath.Join(dir, "d"), "user.lockfs."+absent, nil)
		require.ErrorIs(t, err, syscall.ENODATA)
	}
	require.Equal(t, "7", lockXattrsOf(t, filepath.Join(dir, "pid"))["pid"])
	require.NotEqual(t, values["token"], lockXattrsOf(t, filepath.Join(dir, "zz"))["token"], "by the name that was used")
	for _, none := range []string{"", "fifo", "link"} {
		require.Empty(t, listXattrs(t, filepath.Join(dir, none)), none)
	}
	_, err = unix.Getxattr(dir, "user.lockfs.state", nil)
	require.ErrorIs(t, err, syscall.ENODATA)

	held := openFile(t, filepath.Join(dir, "pid"), os.O_RDONLY)
	require.NoError(t, os.Remove(filepath.Join(dir, "pid")))
	_, err = unix.Fgetxattr(int(held.Fd()), "user.lockfs.state", nil)
	require.ErrorIs(t, err, syscall.ENODATA, "it is no lock any more")

	for _, name := range []string{"user.lockfs.state", "user.lockfs.mine", "user.lockfs."} {
		require.NoError(t, unix.Setxattr(path, name, []byte("stale"), 0))
		require.NoError(t, unix.Removexattr(path, name))
		require.Equal(t, values, lockXattrsOf(t, path), "without effect")
		set := &storepb.SetXattr{Ino: lstat(t, path).Ino, Name: []byte(name)}
		result, err := c.open().Mutate(t.Context(), &storepb.Caller{}, &storepb.Op{Op: &storepb.Op_SetXattr{SetXattr: set}})
		require.NoError(t, err)
		require.Equal(t, storepb.Code_NOT_PERMITTED, result.GetCode())
	}
	require.NoError(t, unix.Setxattr(path, "user.lockfs", []byte("mine"), 0))
}

func TestXattrsThatAreRefused(t *testing.T) {
	dir, _ := mountFor(t, newCluster())
	path := writeFile(t, dir, "f", "")
	for _, name := range []string{
		"system.posix_acl_access", "system.posix_acl_default", "security.capability", "security.selinux", "trusted.x",
	} {
		_, err := unix.Getxattr(path, name, nil)
		require.ErrorIs(t, err, syscall.EOPNOTSUPP, name)
	}
	for _, name := range []string{"system.posix_acl_access", "security.selinux", "trusted.x"} {
		require.ErrorIs(t, unix.Removexattr(path, name), syscall.EOPNOTSUPP, name)
	}
	require.ErrorIs(t, unix.Setxattr(path, "security.x", []byte("x"), 0), syscall.EOPNOTSUPP)
	require.ErrorIs(t, unix.Setxattr(path, "trusted.x", []byte("x"), 0), syscall.EOPNOTSUPP)
	acl := []byte{2, 0, 0, 0, 1, 0, 6, 0, 255, 255, 255, 255, 4, 0, 4, 0, 255, 255, 255, 255, 32, 0, 4, 0, 255, 255, 255, 255}
	require.ErrorIs(t, unix.Setxattr(path, "system.posix_acl_access", acl, 0), syscall.EOPNOTSUPP)
	require.ErrorIs(t, unix.Setxattr(path, "user.", []byte("x"), 0), syscall.EINVAL)

	require.NoError(t, os.Symlink("f", filepath.Join(dir, "l")))
	require.ErrorIs(t, unix.Lsetxattr(filepath.Join(dir, "l"), "user.x", []byte("x"), 0), syscall.EPERM)
}

// TestWatched: a process is watched by the mount on its host, unless that is another one than when the lock was taken, which
// sees other processes.
func TestWatched(t *testing.T) {
	fs := newFileSystem(newCluster().openOn("here"), Options{})
	own := &storepb.Process{Pid: 7, PidNamespace: fs.pidNamespace}
	other := &storepb.Process{Pid: 7, PidNamespace: fs.pidNamespace + 1}
	for _, row := range []struct {
		host    string
		process *storepb.Process
		state   lockfact.State
		watched bool
	}{
		{"here", own, lockfact.Held, true},
		{"here", other, lockfact.Held, false},
		{"there", other, lockfact.Held, true},
		{"there", other, lockfact.Unreachable, true},
		{"here", own, lockfact.Stale, false},
		{"here", nil, lockfact.Held, false},
	} {
		lock := &storepb.Lock{State: string(row.state), Facts: &storepb.Facts{Host: row.host, Process: row.process}}
		require.Equal(t, row.watched, fs.isWatched(lock), "%+v", row)
	}
}
