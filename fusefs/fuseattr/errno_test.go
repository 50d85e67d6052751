package fuseattr

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/storepb"
)

func TestErrnoOfEveryCode(t *testing.T) {
	want := map[storepb.Code]syscall.Errno{
		storepb.Code_OK:                0,
		storepb.Code_NOT_FOUND:         syscall.ENOENT,
		storepb.Code_EXISTS:            syscall.EEXIST,
		storepb.Code_NOT_DIRECTORY:     syscall.ENOTDIR,
		storepb.Code_IS_DIRECTORY:      syscall.EISDIR,
		storepb.Code_NOT_EMPTY:         syscall.ENOTEMPTY,
		storepb.Code_INVALID:           syscall.EINVAL,
		storepb.Code_NAME_TOO_LONG:     syscall.ENAMETOOLONG,
		storepb.Code_FILE_TOO_BIG:      syscall.EFBIG,
		storepb.Code_NO_SPACE:          syscall.ENOSPC,
		storepb.Code_QUOTA:             syscall.EDQUOT,
		storepb.Code_NO_ACCESS:         syscall.EACCES,
		storepb.Code_NOT_PERMITTED:     syscall.EPERM,
		storepb.Code_TOO_MANY_LINKS:    syscall.EMLINK,
		storepb.Code_NO_ATTRIBUTE:      syscall.ENODATA,
		storepb.Code_UNSUPPORTED:       syscall.EOPNOTSUPP,
		storepb.Code_STALE:             syscall.ESTALE,
		storepb.Code_CONFLICT:          syscall.EIO,
		storepb.Code_CANCELLED:         syscall.ETIMEDOUT,
		storepb.Code_SESSION_UNKNOWN:   syscall.EIO,
		storepb.Code_SESSION_FORGOTTEN: syscall.EIO,
		storepb.Code_DUPLICATE:         syscall.EIO,
		storepb.Code_UNKNOWN_COMMAND:   syscall.EIO,
		storepb.Code_WOULD_BLOCK:       syscall.EAGAIN,
		storepb.Code_WAITING:           syscall.EIO, // the cluster client waits
		storepb.Code_DEADLOCK:          syscall.EDEADLK,
		storepb.Code_NO_LOCKS:          syscall.ENOLCK,
		storepb.Code_SESSION_LOST:      syscall.EIO,
		storepb.Code_NOT_JUDGED:        syscall.ESTALE, // the kernel looks again
		storepb.Code_NEED_LINEAGE:      syscall.EIO,    // the cluster client sends the command again
		storepb.Code_BUSY:              syscall.EBUSY,
		storepb.Code_OTHER_RULES:       syscall.EXDEV,
		storepb.Code_TOO_MANY_REQUESTS: syscall.EAGAIN,
	}
	for number, name := range storepb.Code_name {
		code := storepb.Code(number)
		require.Contains(t, want, code, "%s has no row in this test", name)
		require.Equal(t, want[code], Errno(code), name)
	}
	require.Equal(t, syscall.EIO, Errno(storepb.Code(9999)))
}
