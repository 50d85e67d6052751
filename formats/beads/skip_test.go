package beads_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/formats/beads"
)

// deadPID is the number of a process that has been waited for.
func deadPID(t testing.TB) int {
	t.Helper()
	cmd := exec.Command("true")
	require.NoError(t, cmd.Run())
	return cmd.Process.Pid
}

func hostname(t testing.TB) string {
	t.Helper()
	host, err := os.Hostname()
	require.NoError(t, err)
	return host
}

// lockDir is a beads directory whose lock file has this content.
func lockDir(t testing.TB, content string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, beads.FileName), []byte(content), beads.FileMode))
	return dir
}

func lockOf(pid int, host string) string {
	return `{"holder":"vc-executor","pid":` + strconv.Itoa(pid) + `,"hostname":"` + host +
		`","started_at":"2025-10-25T12:00:00Z","version":"1.0.0"}`
}

func exists(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, beads.FileName))
	return err == nil
}

func TestBeadsLockFileName(t *testing.T) {
	require.Equal(t, ".exclusive-lock", beads.FileName)
}

func TestBeadsDaemon1ProceedsWithoutLockFile(t *testing.T) {
	skip, holder, err := beads.ShouldSkipDatabase(t.TempDir())
	require.NoError(t, err)
	require.False(t, skip)
	require.Empty(t, holder)
	require.Empty(t, beads.LogLine(skip, holder, err))
}

func TestBeadsDaemon2SkipsAValidLock(t *testing.T) {
	dir := lockDir(t, lockOf(os.Getpid(), hostname(t)))
	skip, holder, err := beads.ShouldSkipDatabase(dir)
	require.NoError(t, err)
	require.True(t, skip)
	require.Equal(t, "vc-executor", holder)
	require.True(t, exists(dir))
	require.Equal(t, "Skipping database (locked by vc-executor)", beads.LogLine(skip, holder, err))
}

func TestBeadsDaemon3RemovesAStaleLock(t *testing.T) {
	for _, host := range []string{hostname(t), strings.ToUpper(hostname(t))} {
		dir := lockDir(t, lockOf(deadPID(t), host))
		skip, holder, err := beads.ShouldSkipDatabase(dir)
		require.NoError(t, err)
		require.False(t, skip)
		require.Equal(t, "vc-executor", holder)
		require.False(t, exists(dir))
		require.Equal(t, "Removed stale lock (vc-executor), proceeding with sync", beads.LogLine(skip, holder, err))
	}
}

func TestBeadsDaemon4FailsSafeOnAMalformedLock(t *testing.T) {
	dead, host := deadPID(t), hostname(t)
	for name, content := range map[string]string{
		"empty":        "",
		"half":         lockOf(dead, host)[:40],
		"not JSON":     "vc-executor",
		"no pid":       strings.Replace(lockOf(dead, host), "pid", "PID", 1),
		"a group":      lockOf(-dead, host),
		"pid twice":    strings.Replace(lockOf(dead, host), `"pid"`, `"pid":1,"pid"`, 1),
		"pid too long": lockOf(dead+1<<32, host),
	} {
		t.Run(name, func(t *testing.T) {
			dir := lockDir(t, content)
			skip, holder, err := beads.ShouldSkipDatabase(dir)
			require.True(t, skip)
			require.Empty(t, holder)
			require.ErrorContains(t, err, "malformed lock file: ")
			require.True(t, exists(dir))
		})
	}
}

func TestBeadsLogLineOfAHalfWrittenLock(t *testing.T) {
	skip, holder, err := beads.ShouldSkipDatabase(lockDir(t, lockOf(1, "x")[:40]))
	require.Equal(t, "Skipping database (lock check failed: malformed lock file: unexpected EOF)",
		beads.LogLine(skip, holder, err))
}

func TestBeadsLogLinesStayLines(t *testing.T) {
	require.Equal(t, `Skipping database (locked by "a\nb")`, beads.LogLine(true, "a\nb", nil))
	require.Equal(t, "Skipping database (lock check failed: x)", beads.LogLine(true, "a", errors.New("x")))
}

func TestBeadsUnreadableLockIsSkipped(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, beads.FileName), 0o755))
	skip, _, err := beads.ShouldSkipDatabase(dir)
	require.True(t, skip)
	require.Error(t, err)
}

func TestBeadsRemoteLocksAreAlwaysValid(t *testing.T) {
	dead := deadPID(t)
	for _, host := range []string{"another-host", hostname(t) + ".example.org", ""} {
		require.True(t, beads.IsProcessAlive(dead, host), host)
	}
	dir := lockDir(t, lockOf(dead, "another-host"))
	skip, holder, err := beads.ShouldSkipDatabase(dir)
	require.NoError(t, err)
	require.True(t, skip)
	require.Equal(t, "vc-executor", holder)
	require.True(t, exists(dir))
}

func TestBeadsOnlyESRCHIsDead(t *testing.T) {
	host := hostname(t)
	require.True(t, beads.IsProcessAlive(os.Getpid(), host))
	require.True(t, beads.IsProcessAlive(os.Getpid(), strings.ToUpper(host)))
	require.False(t, beads.IsProcessAlive(deadPID(t), host))
	require.False(t, beads.IsProcessAlive(1<<30, host), "a number that no process has")
}

func TestBeadsNumbersThatAreNoProcessProveNothing(t *testing.T) {
	dead := deadPID(t)
	for _, pid := range []int{0, -1, -dead, 1 << 32, 1<<32 + dead} {
		require.True(t, beads.IsProcessAlive(pid, hostname(t)), "%d", pid)
	}
}

func TestBeadsZombieIsAlive(t *testing.T) {
	cmd := exec.Command("true")
	require.NoError(t, cmd.Start())
	defer func() { _ = cmd.Wait() }()
	require.True(t, beads.IsProcessAlive(cmd.Process.Pid, hostname(t)), "not waited for yet")
}
