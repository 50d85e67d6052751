package inotify

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"lockfs/raftstore/ids"
)

func TestWatchedInodesAreThoseOfTheDevice(t *testing.T) {
	watched := make(map[ids.Inode]bool)
	addWatched(watched, []byte("pos:\t0\nflags:\t02\nmnt_id:\t15\n"+
		"inotify wd:2 ino:1f sdev:2d mask:400 ignored_mask:0 fhandle-bytes:8 fhandle-type:1 f_handle:1f\n"+
		"inotify wd:1 ino:20 sdev:2e mask:400 ignored_mask:0\ninotify wd:x\n"), 0x2d)
	require.Equal(t, map[ids.Inode]bool{0x1f: true}, watched)
}

func TestWatchedInodesAreFoundInProc(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	info, err := os.Stat(path)
	require.NoError(t, err)
	stat := info.Sys().(*syscall.Stat_t)
	device := unix.Major(stat.Dev)<<20 | unix.Minor(stat.Dev)
	require.False(t, Inodes(device)[ids.Inode(stat.Ino)])

	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Close(fd)) }()
	_, err = unix.InotifyAddWatch(fd, path, unix.IN_DELETE_SELF)
	require.NoError(t, err)
	require.True(t, Inodes(device)[ids.Inode(stat.Ino)])
}
