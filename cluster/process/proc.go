package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// stat has the fields of a process in /proc.
type stat struct {
	Relative
	ppid int // 0: none can be seen
}

// statusField returns a field of proc_pid_status(5). The name before it has no newlines.
func statusField(status []byte, name string) []byte {
	_, value, _ := bytes.Cut(status, []byte("\n"+name+":"))
	value, _, _ = bytes.Cut(value, []byte("\n"))
	return bytes.TrimSpace(value)
}

// readStat reads the main thread's stat below a thread of the same process: the file exists only while
// they belong together. /proc/PID/stat has the same, but at the cost of a walk through all threads.
func readStat(thread, process int) (stat, error) {
	var buffer [1024]byte // for the first 22 fields with the longest possible name
	path := "/proc/" + strconv.Itoa(thread) + "/task/" + strconv.Itoa(process) + "/stat"
	line, err := read(path, buffer[:])
	if err != nil {
		return stat{}, err
	}
	s, err := parseStat(line)
	if err != nil {
		return stat{}, fmt.Errorf("%s: %w", path, err)
	}
	s.PID = process
	return s, nil
}

// parseStat reads the needed fields of proc_pid_stat(5). The second one, the name, may have spaces and
// parentheses.
func parseStat(line []byte) (s stat, err error) {
	rest := line[bytes.LastIndexByte(line, ')')+1:]
	for field := 2; len(rest) > 0; field++ {
		var value []byte
		value, rest, _ = bytes.Cut(rest, []byte(" "))
		switch field {
		case 4:
			s.ppid, err = strconv.Atoi(string(value))
		case 5:
			s.Group, err = strconv.Atoi(string(value))
		case 22:
			s.Start, err = strconv.ParseUint(string(value), 10, 64)
			return s, err
		}
		if err != nil {
			return s, err
		}
	}
	return s, errors.New("too few fields")
}

// read returns the beginning of a file in /proc. An os.File would cost more than the read.
func read(path string, buffer []byte) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, procError("open", path, err)
	}
	n, err := unix.Read(fd, buffer)
	_ = unix.Close(fd)
	if err != nil {
		return nil, procError("read", path, err)
	}
	return buffer[:n], nil
}

// procError distinguishes missing or hidden files from failures.
func procError(op, path string, err error) error {
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ESRCH), errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return ErrUnknown
	}
	return &os.PathError{Op: op, Path: path, Err: err}
}

// isOf reports whether a thread belongs to a process. The main thread does for the life of the process.
func isOf(thread, process int) bool {
	return thread == process || unix.Tgkill(process, thread, 0) != unix.ESRCH
}
