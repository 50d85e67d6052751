package thread

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestWhatIsSeenOfACall has threads be in, and not be in, what begins anew, as the kernel tells of them.
func TestWhatIsSeenOfACall(t *testing.T) {
	const thread = 7
	before := proc
	t.Cleanup(func() { proc = before })
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
			proc = t.TempDir()
			if row.syscall != "" {
				dir := filepath.Join(proc, fmt.Sprint(thread))
				require.NoError(t, os.Mkdir(dir, 0o700))
				require.NoError(t, os.WriteFile(filepath.Join(dir, "syscall"), []byte(row.syscall), 0o600))
			}
			require.Equal(t, row.begins, BeginsAnew(thread))
			require.Equal(t, row.seen, IsSeenToBegin(thread))
			require.Equal(t, row.may, MayBegin(thread))
		})
	}
}
