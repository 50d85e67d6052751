package daemon

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"lockfs/cluster/session"
)

const (
	// pickUpLimit is how long a mount waits for systemd to start the process that goes on with it, and programs for the mount.
	pickUpLimit = 30 * time.Second
	// pickUpPatience is how long a process that starts waits for a guard to hand over what is left: one does as soon as it sees that
	// the process before has ended.
	pickUpPatience = 2 * time.Second
)

// guardSocket is where a guard hands over what a mount's process has left, in the abstract namespace: it is known by the session
// file, which no other mount has, and the directory.
func guardSocket(sessionFile *os.File, dir string) (*net.UnixAddr, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(sessionFile.Fd()), &st); err != nil {
		return nil, os.NewSyscallError("fstat", err)
	}
	return socketOf(&st, dir), nil
}

func socketOf(sessionFile *unix.Stat_t, dir string) *net.UnixAddr {
	sum := sha256.Sum256([]byte(dir))
	return &net.UnixAddr{Net: "unix", Name: fmt.Sprintf("@lockfs-guard-%x-%x-%x", sessionFile.Dev, sessionFile.Ino, sum[:8])}
}

// pickUp asks for what a process has left that was killed, and goes on with the mount of a directory then; nil if there is nothing.
func pickUp(sessionPath, dir string) *inheritance {
	for _, path := range session.Files(sessionPath) {
		var st unix.Stat_t
		if unix.Stat(path, &st) != nil {
			continue
		}
		conn, err := net.DialUnix("unix", nil, socketOf(&st, dir))
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

// receive has the connection go on as the inheritance's guard.
func receive(conn *net.UnixConn) (*inheritance, error) {
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
		return nil, errors.Join(err, errors.New("a guard has sent no files"))
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
	return newInheritance(append(files, guard), 0)
}

// isOurs refuses those of other users.
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

// listenFor lets the next process of a mount ask before the guard runs that is to answer it, or knows that this process has ended. It
// answers nil where nobody starts one.
func listenFor(sessionFile *os.File, dir string) (*os.File, error) {
	if sessionFile == nil || !isSupervised() {
		return nil, nil
	}
	address, err := guardSocket(sessionFile, dir)
	if err != nil {
		return nil, err
	}
	listener, err := net.ListenUnix("unix", address)
	if err != nil {
		return nil, err
	}
	file, err := listener.File()
	return file, errors.Join(err, listener.Close())
}

// giveToNext hands what is left to the next process that asks, until one has a guard of its own; false: none does in time.
func (l *leaving) giveToNext() bool {
	for l.socket != nil {
		conn, err := acceptAt(l.socket)
		if err != nil {
			return false
		}
		err = l.give(conn)
		if err == nil {
			return true
		}
		if l.told = errors.Is(err, errToldToEnd); l.told {
			return false
		}
		// The guard of a process that has not lived to be served by it may have the name yet, for a moment.
		for range 10 {
			if l.socket, err = listenFor(l.journal, l.connection.Dir); err == nil {
				break
			}
			time.Sleep(pickUpPatience / 20)
		}
	}
	return false
}

// acceptAt accepts one connection, and then listens no more: the next guard does.
func acceptAt(socket *os.File) (*net.UnixConn, error) {
	generic, err := net.FileListener(socket)
	if err = errors.Join(err, socket.Close()); err != nil {
		return nil, err
	}
	listener := generic.(*net.UnixListener)
	defer func() { _ = listener.Close() }()
	if err := listener.SetDeadline(time.Now().Add(pickUpLimit)); err != nil {
		return nil, err
	}
	return listener.AcceptUnix()
}

// give hands it to a process, and hears whether that has a guard of its own.
func (l *leaving) give(conn *net.UnixConn) error {
	defer func() { _ = conn.Close() }()
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
	if _, _, err := conn.WriteMsgUnix(which, unix.UnixRights(fds...), nil); err != nil {
		return err
	}
	return hear(conn)
}
