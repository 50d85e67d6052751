package daemon

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// handoverVariable says with which descriptors a program is started that goes on with a mount: those of the state, of the session file, and of the
// connection, by comma; -1 in place of one that there is not.
const handoverVariable = "LOCKFS_HANDOVER"

// inheritance is what the program that ran in this process before has handed over.
type inheritance struct {
	state   []byte
	session *os.File
	files   []*os.File // of the connection
}

// inherit answers nil if nothing was handed over.
func inherit() (*inheritance, error) {
	list := os.Getenv(handoverVariable)
	if list == "" {
		return nil, nil
	}
	if err := os.Unsetenv(handoverVariable); err != nil {
		return nil, err
	}
	var files []*os.File
	for _, word := range strings.Split(list, ",") {
		fd, err := strconv.Atoi(word)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", handoverVariable, err)
		}
		var file *os.File
		if fd >= 0 {
			unix.CloseOnExec(fd)
			if err := unix.SetNonblock(fd, false); err != nil { // else the runtime polls it too
				return nil, os.NewSyscallError("fcntl", err)
			}
			file = os.NewFile(uintptr(fd), nameOf(fd))
		}
		files = append(files, file)
	}
	if len(files) != 5 || files[0] == nil || files[1] == nil || files[2] == nil {
		return nil, fmt.Errorf("%s: it has to name five descriptors", handoverVariable)
	}
	state, err := io.ReadAll(io.NewSectionReader(files[0], 0, 1<<40))
	if err = errors.Join(err, files[0].Close()); err != nil {
		return nil, fmt.Errorf("state of the mount: %w", err)
	}
	return &inheritance{state: state, session: files[1], files: files[2:]}, nil
}

// nameOf is the path of the session file, which is removed by that, and something to print for others.
func nameOf(fd int) string {
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return "handed over"
	}
	return name
}

// bequeath answers the variable for the next program in this process, with descriptors that stay open until then.
func bequeath(state []byte, session *os.File, connection []*os.File) (variable string, err error) {
	fd, err := unix.MemfdCreate("lockfs-mount", unix.MFD_CLOEXEC)
	if err != nil {
		return "", os.NewSyscallError("memfd_create", err)
	}
	memory := os.NewFile(uintptr(fd), "state")
	if _, err := memory.Write(state); err != nil {
		return "", err
	}
	var words []string
	for _, file := range append([]*os.File{memory, session}, connection...) {
		fd := -1
		if file != nil {
			// A number that nothing in this process closes any more.
			if fd, err = unix.FcntlInt(file.Fd(), unix.F_DUPFD, 3); err != nil {
				return "", os.NewSyscallError("fcntl", err)
			}
		}
		words = append(words, strconv.Itoa(fd))
	}
	return handoverVariable + "=" + strings.Join(words, ","), nil
}
