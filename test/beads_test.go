package test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// buildDaemon compiles clients/skip.go.
func buildDaemon(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "daemon")
	build := exec.Command("go", "build", "-o", path, "./clients/skip.go")
	output, err := build.CombinedOutput()
	require.NoError(t, err, "%s", output)
	return path
}

// TestBeadsBetweenHosts: a live lock is safe from other hosts, whose daemons leave the database alone until its
// holder is dead.
func TestBeadsBetweenHosts(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 2)
	a, b := c.nodes[0].host, c.nodes[1].host
	daemon, dir := buildDaemon(t), c.path(".beads")
	b.MustRun(t, "mkdir", dir)
	lock := filepath.Join(dir, ".exclusive-lock")
	requireDaemon := func(want string) {
		t.Helper()
		for _, h := range []*hosts.Host{a, b} {
			require.Equal(t, want, h.MustRun(t, daemon, dir), h.Name())
		}
	}
	requireDaemon("false \"\" \n")

	holder := startShell(t, a, "/")
	holder.must(c.program + " beads acquire " + dir + " --holder me")
	pid := strings.TrimSpace(holder.must("echo $$"))
	content := b.MustRun(t, "cat", lock)
	requireDaemon("true \"me\" Skipping database (locked by me)\n")
	for _, overwrite := range []string{
		`echo mine > "$1"`, `echo >> "$1"`, `rm "$1"`, `echo mine > "$1.tmp" && mv -f "$1.tmp" "$1"`,
		`python3 -c 'import sys; open(sys.argv[1], "w")' "$1"`,
	} {
		_, err := b.Run("bash", "-c", overwrite, "bash", lock)
		require.ErrorContains(t, err, "Device or resource busy", overwrite)
	}
	other := startShell(t, b, dir)
	for _, call := range []string{"acquire . --holder other", "release .", "run . --holder other -- true"} {
		_, err := other.do(c.program + " beads " + call)
		require.ErrorContains(t, err, "exit status 75")
		require.ErrorContains(t, err, "locked by me (process "+pid+" on a)")
	}
	other.fails(c.program+" beads check .", "exit status 75")
	require.Equal(t, content, b.MustRun(t, "cat", lock))

	holder.process.Kill()
	c.awaitGone(t, ".beads/.exclusive-lock", a, b)
	requireDaemon("false \"\" \n")
	require.Equal(t, "No lock\n", b.MustRun(t, c.program, "beads", "check", dir))
	require.Equal(t, "mine\n", b.MustRun(t, c.program, "beads", "run", dir, "--holder", "other", "--", "echo", "mine"))
}

// TestBeadsRunLosesItsLock takes the lock of a running command away by force, from another host.
func TestBeadsRunLosesItsLock(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 2)
	a, b := c.nodes[0].host, c.nodes[1].host
	a.MustRun(t, "mkdir", c.path(".beads"))
	lock := ".beads/.exclusive-lock"
	run, dir := c.startRun(t, a, lock, "--format", "beads")
	_, err := b.Run(c.program, "rm", c.path(lock))
	require.ErrorContains(t, err, "beads lock of a-")
	require.ErrorContains(t, err, "`lockfs rm --force")
	b.MustRun(t, c.program, "rm", "--force", c.path(lock))
	awaitFile(t, filepath.Join(dir, "told"))
	require.ErrorContains(t, run.Wait(), "exit status 124")
	require.Contains(t, run.Log(), "the lock was lost while the command ran")
}
