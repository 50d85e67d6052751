package daemon

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"lockfs/fusefs/estate"
)

// handoverVariable says with which descriptors a program is started that goes on with a mount: those of the state, of the session file, and of the
// connection, by comma; -1 in place of one that there is not. After them comes, if a guard process has started it, that of a
// pipe by which the guard waits until another one is there.
const handoverVariable = "LOCKFS_HANDOVER"

// inheritance is what the program that ran in this process before has handed over, or a guard process what was left of another.
type inheritance struct {
	state   []byte
	session *os.File
	files   []*os.File // of the connection
	guard   *os.File   // see handoverVariable; nil: none waits
}

// isGuarded tells whether the guard that has started this process will start another one should it fail.
func (i *inheritance) isGuarded() bool { return i != nil && i.guard != nil }

// guarded lets that guard go, if it is still there: there is to be another one.
func (i *inheritance) guarded() {
	if i.isGuarded() {
		_, _ = i.guard.Write([]byte{0})
		_ = i.guard.Close()
		i.guard = nil
	}
}

// newInheritance is of the files that handoverVariable names.
func newInheritance(files []*os.File) (*inheritance, error) {
	if len(files) < 5 || files[0] == nil || files[1] == nil || files[2] == nil {
		return nil, errors.New("what is handed over of a mount has to be five files at least")
	}
	state, err := estate.Load(files[0])
	if err = errors.Join(err, files[0].Close()); err != nil {
		return nil, fmt.Errorf("state of the mount: %w", err)
	}
	i := &inheritance{state: state, session: files[1], files: files[2:5]}
	if len(files) > 5 {
		i.guard = files[5]
	}
	return i, nil
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
		file, err := fileOf(fd)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return newInheritance(files)
}

// fileOf is a descriptor that was handed over; nil for -1.
func fileOf(fd int) (*os.File, error) {
	if fd < 0 {
		return nil, nil
	}
	unix.CloseOnExec(fd)
	if err := unix.SetNonblock(fd, false); err != nil { // else the runtime polls it too
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fd), nameOf(fd)), nil
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
	var fds []int
	for _, file := range append([]*os.File{memory, session}, connection...) {
		fd := -1
		if file != nil {
			// A number that nothing in this process closes any more.
			if fd, err = unix.FcntlInt(file.Fd(), unix.F_DUPFD, 3); err != nil {
				return "", os.NewSyscallError("fcntl", err)
			}
		}
		fds = append(fds, fd)
	}
	return handedOver(fds), nil
}

// handedOver is the variable.
func handedOver(fds []int) string {
	var words []string
	for _, fd := range fds {
		words = append(words, strconv.Itoa(fd))
	}
	return handoverVariable + "=" + strings.Join(words, ",")
}
