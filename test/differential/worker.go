package differential

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// workerWord, as the first argument, makes the test binary a worker. Its socket for commands and its
// directory follow.
const workerWord = "differential-worker"

// Args returns the arguments for the test binary to be a worker.
func Args(socket, dir string) []string { return []string{workerWord, socket, dir} }

// Main is for the begin of TestMain. In a process started as a worker it does not return.
func Main() {
	if len(os.Args) != 4 || os.Args[1] != workerWord {
		return
	}
	if err := work(os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// work makes calls until the socket is closed.
func work(socket, dir string) error {
	runtime.GOMAXPROCS(1) // no concurrency
	runtime.LockOSThread()
	unix.Umask(0)
	w := newWorker(dir)
	defer w.closeAll()
	return serve(socket, w.do)
}

func serve(socket string, do func(*Call) Answer) error {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	calls, answers := json.NewDecoder(conn), json.NewEncoder(conn)
	if err := answers.Encode(Family{Host: host, PID: os.Getpid()}); err != nil {
		return err
	}
	for {
		var call Call
		if err := calls.Decode(&call); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := answers.Encode(do(&call)); err != nil {
			return err
		}
	}
}

// worker makes calls.
type worker struct {
	base  string // parent of the sequences' directories
	dir   string // of the present sequence
	fd    int    // of dir; -1: none
	slots map[int]int
}

func newWorker(base string) *worker { return &worker{base: base, fd: -1, slots: make(map[int]int)} }

func (w *worker) closeAll() {
	for slot, fd := range w.slots {
		_ = unix.Close(fd)
		delete(w.slots, slot)
	}
	if w.fd >= 0 {
		_ = unix.Close(w.fd)
	}
	w.fd = -1
}

// do makes a call.
func (w *worker) do(c *Call) (a Answer) {
	err := w.call(c, &a)
	if err == nil {
		return a
	}
	a.Errno = err.Error()
	var errno unix.Errno
	if errors.As(err, &errno) {
		a.Errno = unix.ErrnoName(errno)
	}
	return a
}

// slot returns the descriptor of an open file; -1 makes calls fail with EBADF.
func (w *worker) slot(c *Call) int {
	if fd, open := w.slots[c.Slot]; open {
		return fd
	}
	return -1
}

func (w *worker) call(c *Call, a *Answer) (err error) {
	switch c.Op {
	case Open:
		w.close(c)
		fd, err := unix.Openat(w.fd, c.Path, c.Flags|unix.O_CLOEXEC, c.Mode)
		if err == nil {
			w.slots[c.Slot] = fd
		}
		return err
	case Close:
		return w.close(c)
	case Read:
		a.Data, err = readAll(w.slot(c))
	case Write:
		return whole(unix.Write(w.slot(c), []byte(c.Data)))(c)
	case Pwrite:
		return whole(unix.Pwrite(w.slot(c), []byte(c.Data), c.At))(c)
	case Ftruncate:
		return unix.Ftruncate(w.slot(c), c.At)
	case Fstat:
		var st unix.Stat_t
		err = unix.Fstat(w.slot(c), &st)
		a.tell(&st)
	case Cat:
		a.Data, err = w.cat(c.Path)
	case Stat:
		var st unix.Stat_t
		err = unix.Fstatat(w.fd, c.Path, &st, unix.AT_SYMLINK_NOFOLLOW)
		a.tell(&st)
	case List:
		a.List, err = w.list(c.Path)
	case Truncate:
		return unix.Truncate(filepath.Join(w.dir, c.Path), c.At)
	case Rename:
		return unix.Renameat2(w.fd, c.Path, w.fd, c.To, 0)
	case NoReplace:
		return unix.Renameat2(w.fd, c.Path, w.fd, c.To, unix.RENAME_NOREPLACE)
	case Link:
		return unix.Linkat(w.fd, c.Path, w.fd, c.To, 0)
	case Symlink:
		return unix.Symlinkat(c.Data, w.fd, c.Path)
	case Readlink:
		target := make([]byte, unix.PathMax)
		n, err := unix.Readlinkat(w.fd, c.Path, target)
		a.Data = string(target[:max(n, 0)])
		return err
	case Unlink:
		return unix.Unlinkat(w.fd, c.Path, 0)
	case Mkdir:
		return unix.Mkdirat(w.fd, c.Path, c.Mode)
	case Rmdir:
		return unix.Unlinkat(w.fd, c.Path, unix.AT_REMOVEDIR)
	case RemoveAll:
		a.List, err = w.removeAll(c.Path)
	case tree:
		a.List, err = w.tree(c.Path)
	case peek:
		a.Met = w.meet(c)
	case prune:
		return w.prune(c)
	case enter:
		return w.enter(c.Path)
	default:
		return fmt.Errorf("unknown call %q", c.Op)
	}
	return err
}

func (w *worker) enter(name string) error {
	w.closeAll()
	w.dir = filepath.Join(w.base, name)
	if err := unix.Mkdir(w.dir, 0o755); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	fd, err := unix.Open(w.dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	w.fd = fd
	return nil
}

// close closes the file of a slot.
func (w *worker) close(c *Call) error {
	fd := w.slot(c)
	delete(w.slots, c.Slot)
	return unix.Close(fd)
}

// whole requires complete writes.
func whole(n int, err error) func(*Call) error {
	return func(c *Call) error {
		if err == nil && n != len(c.Data) {
			return fmt.Errorf("wrote %d bytes of %d", n, len(c.Data))
		}
		return err
	}
}

// readAll reads a small file from its begin.
func readAll(fd int) (string, error) {
	buffer := make([]byte, 64<<10)
	n, err := unix.Pread(fd, buffer, 0)
	return string(buffer[:max(n, 0)]), err
}

func (w *worker) cat(path string) (string, error) {
	fd, err := unix.Openat(w.fd, path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = unix.Close(fd) }()
	return readAll(fd)
}

func (a *Answer) tell(st *unix.Stat_t) {
	a.Kind, a.Mode = kindOf(st.Mode), st.Mode
	if a.Kind != "d" {
		a.Nlink, a.Size = st.Nlink, st.Size
	}
}

// list reads the names in a directory with their types.
func (w *worker) list(path string) (list []string, err error) {
	fd, err := unix.Openat(w.fd, path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	buffer := make([]byte, 8<<10)
	for {
		n, err := unix.Getdents(fd, buffer)
		if err != nil || n == 0 {
			slices.Sort(list)
			return list, err
		}
		for rest := buffer[:n]; len(rest) > 0; {
			// struct linux_dirent64: ino, offset, record length, type, name (getdents64(2)).
			const lengthAt, kindAt, nameAt = 16, 18, 19
			length := binary.NativeEndian.Uint16(rest[lengthAt:])
			name, _, _ := bytes.Cut(rest[nameAt:length], []byte{0})
			// The types of directory entries are those of modes, shifted.
			list = append(list, fmt.Sprintf("%s %s", name, kindOf(uint32(rest[kindAt])<<12)))
			rest = rest[length:]
		}
	}
}

// removeAll runs rm and returns its errors.
func (w *worker) removeAll(path string) ([]string, error) {
	rm := exec.Command("rm", "-rf", "--", path)
	rm.Dir, rm.Env = w.dir, []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH")}
	output, err := rm.CombinedOutput()
	complaints := strings.Split(strings.TrimSpace(string(output)), "\n")
	slices.Sort(complaints)
	if err != nil {
		return complaints, errors.New(err.Error())
	}
	return nil, nil
}

// tree returns a line for each name below a path.
func (w *worker) tree(path string) (list []string, err error) {
	below, err := w.below(path)
	for _, n := range below {
		var st unix.Stat_t
		if err := unix.Fstatat(w.fd, n.Path, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return nil, err
		}
		line := fmt.Sprintf("%s %o", n.Path, st.Mode)
		if n.Kind != "d" {
			line += fmt.Sprintf(" %d names, %d bytes: %q", st.Nlink, st.Size, n.Content)
		}
		list = append(list, line)
	}
	return list, err
}

// below returns everything in a directory and its subdirectories.
func (w *worker) below(path string) (all []Named, err error) {
	dir, err := w.stat(path)
	if err != nil || dir.Kind != "d" {
		return nil, err
	}
	list, err := w.list(path)
	for _, line := range list {
		name, _, _ := strings.Cut(line, " ")
		if name == "." || name == ".." {
			continue
		}
		n, err := w.stat(filepath.Join(path, name))
		if err != nil {
			return nil, err
		}
		n.Place = Place{dir.Ino, name}
		all = append(all, n)
		in, err := w.below(n.Path)
		if err != nil {
			return nil, err
		}
		all = append(all, in...)
	}
	return all, err
}

// stat returns the file of a path, without its place.
func (w *worker) stat(path string) (n Named, err error) {
	var st unix.Stat_t
	if err := unix.Fstatat(w.fd, path, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return n, err
	}
	n = Named{Path: path, Ino: st.Ino, Kind: kindOf(st.Mode), Nlink: st.Nlink}
	switch n.Kind {
	case "-":
		n.Content, err = w.cat(path)
	case "l":
		target := make([]byte, unix.PathMax)
		var size int
		size, err = unix.Readlinkat(w.fd, path, target)
		n.Content = string(target[:max(size, 0)])
	}
	return n, err
}

// meet returns the files at the paths of a call; Data has its kind.
func (w *worker) meet(of *Call) []Met {
	c := *of
	c.Op = Op(of.Data)
	if c.onSlot() {
		var st unix.Stat_t
		if unix.Fstat(w.slot(&c), &st) != nil {
			return nil
		}
		content := ""
		if kindOf(st.Mode) == "-" {
			if fd, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", w.slot(&c)), unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
				content, _ = readAll(fd)
				_ = unix.Close(fd)
			}
		}
		return []Met{{Way: []Named{{Ino: st.Ino, Kind: kindOf(st.Mode), Nlink: st.Nlink, Content: content}}}}
	}
	met := []Met{w.meetAt(c.Path, c.follows())}
	if c.To != "" {
		met = append(met, w.meetAt(c.To, false))
	}
	return met
}

// meetAt returns the end of a path. Way is empty if a directory on it is missing.
func (w *worker) meetAt(path string, follow bool) (m Met) {
	path, links, ok := w.resolve(path, follow)
	m.Links = links
	if !ok {
		return m
	}
	dir, err := w.stat(".")
	if err != nil {
		return m
	}
	at := ""
	for _, name := range strings.Split(path, "/") {
		at = filepath.Join(at, name)
		n, err := w.stat(at)
		if err != nil {
			n = Named{Path: at}
		}
		n.Place = Place{dir.Ino, name}
		m.Way = append(m.Way, n)
		dir = n
	}
	if dir.Kind == "d" {
		m.Below, _ = w.below(path)
	}
	return m
}

// resolve returns a path without symbolic links, except a last one that is not followed, and the links
// followed at its end.
func (w *worker) resolve(path string, follow bool) (resolved string, links []Named, ok bool) {
	const linksMost = 8
	for range linksMost {
		parent, err := w.real(filepath.Dir(path))
		if err != nil {
			return "", links, false
		}
		path = filepath.Join(parent, filepath.Base(path))
		n, err := w.stat(path)
		if err != nil || n.Kind != "l" || !follow {
			return path, links, true
		}
		if dir, err := w.stat(parent); err == nil {
			n.Place = Place{dir.Ino, filepath.Base(path)}
			links = append(links, n)
		}
		path = filepath.Join(parent, n.Content)
	}
	return "", links, false
}

// real returns the path of an existing directory.
func (w *worker) real(path string) (string, error) {
	fd, err := unix.Openat(w.fd, path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = unix.Close(fd) }()
	path, err = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return "", err
	}
	return filepath.Rel(w.dir, path)
}

// prune removes a path and everything below, except kept paths and their parents.
func (w *worker) prune(c *Call) error {
	all, err := w.below(c.Path)
	if err != nil {
		return err
	}
	self, err := w.stat(c.Path)
	if err != nil {
		return err
	}
	for _, n := range slices.Backward(append([]Named{self}, all...)) {
		if slices.Contains(c.Keep, n.Path) {
			continue
		}
		flags := 0
		if n.Kind == "d" {
			flags = unix.AT_REMOVEDIR
		}
		if err := unix.Unlinkat(w.fd, n.Path, flags); err != nil {
			return err
		}
	}
	return nil
}
