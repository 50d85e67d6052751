package fuseattr

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/require"

	"lockfs/raftstore/storepb"
)

func TestParseGroups(t *testing.T) {
	const status = "Name:\tx\nUmask:\t0022\nUid:\t1\t2\t3\t7\nGid:\t4\t5\t6\t8\nFDSize:\t64\nGroups:\t4 20 4294967295 \nNStgid:\t9\n"
	for _, row := range []struct {
		status   string
		uid, gid uint32
		groups   []uint32
		more     bool
	}{
		{status, 7, 8, []uint32{4, 20, 4294967295}, false},
		{status, 1, 8, nil, true}, // it acts as somebody else
		{status, 7, 4, nil, true},
		{strings.Replace(status, "4 20 4294967295", "", 1), 7, 8, nil, false},
		{strings.Replace(status, " 20 ", " 65534 ", 1), 7, 8, []uint32{4, 4294967295}, true}, // whichever that is
		{"", 0, 0, nil, true},
	} {
		groups, more := parseGroups([]byte(row.status), row.uid, row.gid)
		require.Equal(t, row.groups, groups, "%+v", row)
		require.Equal(t, row.more, more, "%+v", row)
	}
}

func TestViewerIsTheCallerWithAllGroups(t *testing.T) {
	sleeper := exec.Command("sleep", "60")
	sleeper.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 5, Gid: 6, Groups: []uint32{7, 8}}}
	require.NoError(t, sleeper.Start())
	defer func() { _ = sleeper.Process.Kill(); _ = sleeper.Wait() }()
	header := &fuse.InHeader{Caller: fuse.Caller{Owner: fuse.Owner{Uid: 5, Gid: 6}, Pid: uint32(sleeper.Process.Pid)}}
	viewer := ViewerOf(header)
	require.Equal(t, []uint32{7, 8}, viewer.GetGroups())
	require.False(t, viewer.GetMoreGroups())
	header.Pid = 0
	require.True(t, ViewerOf(header).GetMoreGroups())
}

func TestMayOpen(t *testing.T) {
	file := func(mode uint32) *storepb.Attr { return &storepb.Attr{Mode: syscall.S_IFREG | mode, Uid: 5, Gid: 5} }
	for _, row := range []struct {
		mode, uid, flags uint32
		want             bool
	}{
		{0o000, 0, syscall.O_RDWR, true},
		{0o600, 5, syscall.O_RDWR, true},
		{0o400, 5, syscall.O_RDONLY, true},
		{0o400, 5, syscall.O_WRONLY, false},
		{0o400, 5, syscall.O_RDONLY | syscall.O_TRUNC, false},
		{0o077, 5, syscall.O_RDONLY, false},
		{0o644, 6, syscall.O_RDONLY, true},
		{0o644, 6, syscall.O_WRONLY, false},
		{0o606, 6, syscall.O_WRONLY, false},
		{0o660, 6, syscall.O_WRONLY, false},
		{0o666, 6, syscall.O_WRONLY, true},
	} {
		got := MayOpen(file(row.mode), &fuse.InHeader{Caller: fuse.Caller{Owner: fuse.Owner{Uid: row.uid}}}, row.flags)
		require.Equal(t, row.want, got, "%+v", row)
	}
}
