package thread

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const thread = 7

// useProc has a directory in place of /proc, in which nothing is told of a thread.
func useProc(t *testing.T) {
	before := proc
	proc = t.TempDir()
	t.Cleanup(func() { proc = before })
	require.NoError(t, os.Mkdir(filepath.Join(proc, fmt.Sprint(thread)), 0o700))
}

// tell tells there what the thread is in.
func tell(syscall string) error {
	dir := filepath.Join(proc, fmt.Sprint(thread))
	if err := os.WriteFile(filepath.Join(dir, "new"), []byte(syscall), 0o600); err != nil {
		return err
	}
	return os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "syscall"))
}

// TestWhatIsSeenOfACall has threads be in, and not be in, what begins anew, as the kernel tells of them.
func TestWhatIsSeenOfACall(t *testing.T) {
	for _, row := range []struct {
		is, syscall       string // none: it may not be looked at
		begins, seen, may bool
	}{
		{"in openat", fmt.Sprintf("%d 0xffffff9c 0x7ffe 0xc1 0x1a4 0x0 0x0 0x7ffe57ac4 0x7f00\n", unix.SYS_OPENAT), true, true, true},
		{"in fstat", fmt.Sprintf("%d 0x3 0x7ffe 0x0 0x0 0x0 0x0 0x7ffe57ac4 0x7f00\n", unix.SYS_FSTAT), false, false, false},
		{"in none", "-1 0x7ffe57ac4 0x7f00\n", false, false, false},
		{"running", "running\n", true, true, true},
		{"not to be looked at", "", true, false, true},
		{"in open of 32 bits", "5 0xffe20aae 0xc1 0x1a4 0x0 0x0 0x0 0xffe1f850 0x8048069\n", false, false, true},
		{"a worker of io_uring", "426 0x3 0x1 0x1 0x1 0x0 0x0 0x0 0x0\n", false, false, true},
		{"unknown", "-1\n", false, false, false},
	} {
		t.Run(row.is, func(t *testing.T) {
			useProc(t)
			if row.syscall != "" {
				require.NoError(t, tell(row.syscall))
			}
			require.Equal(t, row.begins, BeginsAnew(thread))
			require.Equal(t, row.seen, IsSeenToBegin(thread))
			require.Equal(t, row.may, MayBegin(thread))
		})
	}
}

func TestFcntlCommand(t *testing.T) {
	for _, row := range []struct {
		is, syscall string
		command     int
	}{
		{"of an open file description", fmt.Sprintf("%d 0x3 0x25 0x7ffe 0x0 0x0 0x0 0x7ffe57ac4 0x7f00\n", unix.SYS_FCNTL), unix.F_OFD_SETLK},
		{"of a process, waiting", fmt.Sprintf("%d 0x3 0x7 0x7ffe 0x0 0x0 0x0 0x7ffe57ac4 0x7f00\n", unix.SYS_FCNTL), unix.F_SETLKW},
		{"another call", fmt.Sprintf("%d 0x3 0x25 0x7ffe 0x0 0x0 0x0 0x7ffe57ac4 0x7f00\n", unix.SYS_READ), -1},
		{"the number that it has in 32 bits, in 64", "221 0x3 0x25 0x7ffe 0x0 0x0 0x0 0x7ffe57ac4 0x7f00\n", -1},
	} {
		t.Run(row.is, func(t *testing.T) {
			useProc(t)
			require.NoError(t, tell(row.syscall))
			require.Equal(t, row.command, FcntlCommand(thread))
		})
	}
}

// TestSurelyFcntlCommand has a thread be seen to run for longer than a system call is waited for elsewhere.
func TestSurelyFcntlCommand(t *testing.T) {
	useProc(t)
	require.NoError(t, tell("running\n"))
	told := make(chan error, 1)
	time.AfterFunc(2*callWait, func() {
		told <- tell(fmt.Sprintf("%d 0x3 0x25 0x7ffe 0x0 0x0 0x0 0x7ffe57ac4 0x7f00\n", unix.SYS_FCNTL))
	})
	require.Equal(t, unix.F_OFD_SETLK, SurelyFcntlCommand(thread))
	require.NoError(t, <-told)
}
