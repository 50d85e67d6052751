package beads_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/formats/beads"
)

const signalled = "BEADS_TEST_PID_OF_ANOTHER_USER"

// A process that may not be signalled (EPERM) is alive. Root may signal everybody, so the test asks as
// nobody, in a process of its own.
func TestBeadsEPERMIsAlive(t *testing.T) {
	if dir := os.Getenv(signalled); dir != "" {
		require.ErrorIs(t, syscall.Kill(os.Getppid(), 0), syscall.EPERM)
		require.True(t, beads.IsProcessAlive(os.Getppid(), hostname(t)))
		return
	}
	if os.Geteuid() != 0 {
		require.True(t, beads.IsProcessAlive(1, hostname(t)))
		return
	}
	program, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	dir, err := os.MkdirTemp("/tmp", "beads-eperm-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	copied := filepath.Join(dir, "test")
	require.NoError(t, os.WriteFile(copied, program, 0o755))

	cmd := exec.Command(copied, "-test.run=^TestBeadsEPERMIsAlive$", "-test.v")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), signalled+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "PASS")
}
