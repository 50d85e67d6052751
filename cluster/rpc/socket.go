package rpc

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"lockfs/raftstore/hostinfo"
)

// staleTime limits the wait for a process to accept a connection.
const staleTime = time.Second

// ListenSocket listens on a unix socket, open to all local users with access to its path. It replaces the
// socket of a dead process. It returns an error if another process listens there.
func ListenSocket(path string) (net.Listener, error) {
	if conn, err := net.DialTimeout("unix", path, staleTime); err == nil {
		_ = conn.Close()
		return nil, fmt.Errorf("socket %s: %w: another process serves it", path, syscall.EADDRINUSE)
	} else if errors.Is(err, syscall.ECONNREFUSED) {
		if err := removeSocket(path); err != nil {
			return nil, err
		}
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	if err := os.Chmod(path, 0o666); err != nil { //nolint:gosec // who connects is known
		return nil, errors.Join(fmt.Errorf("socket: %w", err), listener.Close())
	}
	return listener, nil
}

func removeSocket(path string) error {
	info, err := os.Lstat(path)
	if err == nil && info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("socket %s: something else is there", path)
	}
	if err == nil {
		err = os.Remove(path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("socket: %w", err)
	}
	return nil
}

// UserAt returns the user of the process which connected to a unix socket, at this time.
func UserAt(conn *net.UnixConn) (Caller, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return Caller{}, err
	}
	caller := Caller{Role: RoleUser}
	controlled := raw.Control(func(fd uintptr) {
		var credentials *unix.Ucred
		if credentials, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err != nil {
			return
		}
		caller.UID, caller.GID = credentials.Uid, credentials.Gid
		caller.Administrator = caller.UID == 0 && hostinfo.IsAdministrator(uint32(credentials.Pid))
		caller.Groups = peerGroups(int(fd))
	})
	return caller, errors.Join(controlled, err)
}

// maxGroups is the limit for a process (NGROUPS_MAX).
const maxGroups = 64 << 10

// peerGroups asks the kernel for the groups at the time of the connection: in /proc, the process could be
// another one by now, or invisible from here. nil: none, or unknown.
func peerGroups(fd int) []uint32 {
	for room := uint32(32); room <= maxGroups; room *= 2 {
		groups := make([]uint32, room)
		size := room * 4
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_PEERGROUPS,
			uintptr(unsafe.Pointer(&groups[0])), uintptr(unsafe.Pointer(&size)), 0)
		switch errno {
		case 0:
			return groups[:size/4]
		case unix.ERANGE:
		default:
			return nil
		}
	}
	return nil
}
