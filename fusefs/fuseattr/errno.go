package fuseattr

import (
	"context"
	"errors"
	"log/slog"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/raftstore/storepb"
)

// Errno returns the error number for a result code; 0 for OK. Codes without a row give EIO: the mount itself
// handles them (CONFLICT), or no program can act on them.
func Errno(code storepb.Code) syscall.Errno {
	if errno, found := errnos[code]; found {
		return errno
	}
	return syscall.EIO
}

var errnos = map[storepb.Code]syscall.Errno{
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
	storepb.Code_NOT_PERMITTED:     syscall.EPERM,
	storepb.Code_NO_ACCESS:         syscall.EACCES,
	storepb.Code_OTHER_RULES:       syscall.EXDEV,
	storepb.Code_TOO_MANY_LINKS:    syscall.EMLINK,
	storepb.Code_NO_ATTRIBUTE:      syscall.ENODATA,
	storepb.Code_UNSUPPORTED:       syscall.EOPNOTSUPP,
	storepb.Code_STALE:             syscall.ESTALE,
	storepb.Code_CANCELLED:         syscall.ETIMEDOUT,
	storepb.Code_BUSY:              syscall.EBUSY,
	storepb.Code_TOO_MANY_REQUESTS: syscall.EAGAIN,
	storepb.Code_WOULD_BLOCK:       syscall.EAGAIN,
	storepb.Code_DEADLOCK:          syscall.EDEADLK,
	storepb.Code_NO_LOCKS:          syscall.ENOLCK,
	storepb.Code_SESSION_LOST:      syscall.EIO,
	storepb.Code_NOT_JUDGED:        syscall.ESTALE,
}

// OfInode converts an error number for a request by inode: a missing inode gives ESTALE, so the VFS looks the
// name up again.
func OfInode(errno syscall.Errno) syscall.Errno {
	if errno == syscall.ENOENT {
		return syscall.ESTALE
	}
	return errno
}

// Status converts an error number for go-fuse.
func Status(errno syscall.Errno) fuse.Status { return fuse.Status(errno) }

// refusal is the error of an operation refused by the cluster.
type refusal interface {
	error
	Code() storepb.Code
}

// Outcome returns the error number for the result of an operation. Without a result, it is ETIMEDOUT at the
// time limit. Otherwise it is the refusal's error or EIO, and the log has the reason. The returned result may
// be nil.
func Outcome(result *storepb.Result, err error, logger *slog.Logger) (*storepb.Result, syscall.Errno) {
	switch {
	case err == nil:
		if exceedsBudget(result.GetCode()) && result.GetMessage() != "" {
			LogRefusal(logger, Errno(result.GetCode()), result.GetMessage())
		}
		return result, Errno(result.GetCode())
	case errors.Is(err, context.DeadlineExceeded):
		return nil, syscall.ETIMEDOUT
	}
	logger.Error("operation has no result", "error", err)
	var refused refusal
	if errors.As(err, &refused) {
		return nil, Errno(refused.Code())
	}
	return nil, syscall.EIO
}
