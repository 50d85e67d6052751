package daemon

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"lockfs/cluster/session"
	"lockfs/cmd/lockfs/internal/cli"
)

const (
	// pickUpLimit is how long a mount and its programs wait for the next process from systemd.
	pickUpLimit = 30 * time.Second
	// pickUpPatience is how long a starting process waits for a guard to hand over the mount. A guard does so
	// as soon as it detects the end of the earlier process.
	pickUpPatience = 2 * time.Second
)

// guardSocket returns the path of a guard's socket. The device and inode of the session file, which is
// unique, and the directory identify the mount.
func guardSocket(sessionFile *unix.Stat_t, dir string) string {
	return cli.GuardSocket(fmt.Sprintf("%x-%x-%s", sessionFile.Dev, sessionFile.Ino, dir))
}

// pickUp takes over the mount of a directory from the guard of a killed process; nil without a guard.
func pickUp(sessionPath, dir string) *handoffState {
	for _, path := range session.Files(sessionPath) {
		var st unix.Stat_t
		if unix.Stat(path, &st) != nil {
			continue
		}
		conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Net: "unix", Name: guardSocket(&st, dir)})
		if err != nil {
			continue
		}
		left, err := receive(conn)
		if err = errors.Join(err, conn.Close()); err == nil {
			return left
		}
	}
	return nil
}

// receive receives the state of a mount, with the connection as its guard.
func receive(conn *net.UnixConn) (*handoffState, error) {
	if err := isOurs(conn); err != nil {
		return nil, err
	}
	if err := conn.SetReadDeadline(time.Now().Add(pickUpPatience)); err != nil {
		return nil, err
	}
	which, rights := make([]byte, 16), make([]byte, unix.CmsgSpace(16*4))
	n, size, _, _, err := conn.ReadMsgUnix(which, rights)
	if err != nil || n == 0 {
		return nil, errors.Join(err, io.ErrUnexpectedEOF)
	}
	messages, err := unix.ParseSocketControlMessage(rights[:size])
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(err, errors.New("the guard has sent no files"))
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for _, isThere := range which[:n] {
		fd := -1
		if isThere != 0 && len(fds) > 0 {
			fd, fds = fds[0], fds[1:]
		}
		file, err := fileOf(fd)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	guard, err := conn.File()
	if err != nil {
		return nil, err
	}
	return newHandoffState(append(files, guard), 0)
}

// isOurs refuses sockets of other users.
func isOurs(conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	if controlErr := raw.Control(func(fd uintptr) {
		peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); controlErr != nil || err != nil {
		return errors.Join(controlErr, err)
	}
	if peer.Uid != uint32(os.Geteuid()) {
		return os.ErrPermission
	}
	return nil
}

// listenFor listens on the guard's socket before the guard runs, so the next process can connect at any time.
// It replaces the socket of an earlier guard. It returns nil without a supervisor to start the next process.
func listenFor(sessionFile *os.File, dir string) (*os.File, error) {
	if sessionFile == nil || !isSupervised() {
		return nil, nil
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(sessionFile.Fd()), &st); err != nil {
		return nil, os.NewSyscallError("fstat", err)
	}
	listener, err := listenAlone(guardSocket(&st, dir))
	if err != nil {
		return nil, err
	}
	file, err := listener.File()
	return file, errors.Join(err, listener.Close())
}

// sendState hands over the mount to connecting processes until one has a guard of its own. It returns false
// at the time limit.
func (l *leaving) sendState() bool {
	for l.socket != nil {
		conn, err := l.giveToOne()
		if err != nil {
			return false
		}
		err = awaitReady(conn)
		if err = errors.Join(err, conn.Close()); err == nil {
			return true
		}
		if l.told = errors.Is(err, errToldToEnd); l.told {
			return false
		}
		// The process may have replaced the socket by the one of its own guard before its end.
		if l.socket, err = listenFor(l.journal, l.connection.Dir); err != nil {
			return false
		}
	}
	return false
}

// giveToOne sends the mount to the first process, closes the socket, and returns the connection.
func (l *leaving) giveToOne() (*net.UnixConn, error) {
	generic, err := net.FileListener(l.socket)
	if err = errors.Join(err, l.socket.Close()); err != nil {
		return nil, err
	}
	listener := generic.(*net.UnixListener)
	defer func() { _ = listener.Close() }()
	if err := listener.SetDeadline(time.Now().Add(pickUpLimit)); err != nil {
		return nil, err
	}
	for {
		conn, err := listener.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if err = l.give(conn); err == nil {
			return conn, nil
		}
		_ = conn.Close() // connected before the end of the mount's process, and has given up
	}
}

// removeSocket removes the guard's socket after the last chance of a takeover.
func (l *leaving) removeSocket() {
	var st unix.Stat_t
	if l.journal != nil && isSupervised() && unix.Fstat(int(l.journal.Fd()), &st) == nil {
		_ = os.Remove(guardSocket(&st, l.connection.Dir))
	}
}

// give sends the files of the mount to a process of this user.
func (l *leaving) give(conn *net.UnixConn) error {
	if err := isOurs(conn); err != nil {
		return err
	}
	var which []byte
	var fds []int
	for _, file := range append([]*os.File{l.estate, l.journal}, l.connection.Files()...) {
		if file == nil {
			which = append(which, 0)
			continue
		}
		which, fds = append(which, 1), append(fds, int(file.Fd()))
	}
	_, _, err := conn.WriteMsgUnix(which, unix.UnixRights(fds...), nil)
	return err
}
