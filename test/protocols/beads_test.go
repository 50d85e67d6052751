package protocols

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// buildDaemon compiles clients/skip.go.
func buildDaemon(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "daemon")
	build := exec.Command("go", "build", "-o", path, testcluster.ClientPath(t, "skip.go"))
	output, err := build.CombinedOutput()
	require.NoError(t, err, "%s", output)
	return path
}

// TestBeadsBetweenHosts: a live lock is safe from other hosts, whose daemons leave the database alone until its
// holder is dead.
func TestBeadsBetweenHosts(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 2)
	a, b := c.Nodes[0].Host, c.Nodes[1].Host
	daemon, dir := buildDaemon(t), c.Path(".beads")
	b.MustRun(t, "mkdir", dir)
	lock := filepath.Join(dir, ".exclusive-lock")
	requireDaemon := func(want string) {
		t.Helper()
		for _, h := range []*hosts.Host{a, b} {
			require.Equal(t, want, h.MustRun(t, daemon, dir), h.Name())
		}
	}
	requireDaemon("false \"\" \n")

	holder := testcluster.StartShell(t, a, "/")
	holder.Must(c.Program + " beads acquire " + dir + " --holder me")
	pid := strings.TrimSpace(holder.Must("echo $$"))
	content := b.MustRun(t, "cat", lock)
	requireDaemon("true \"me\" Skipping database (locked by me)\n")
	for _, overwrite := range []string{
		`echo mine > "$1"`, `echo >> "$1"`, `rm "$1"`, `echo mine > "$1.tmp" && mv -f "$1.tmp" "$1"`,
		`python3 -c 'import sys; open(sys.argv[1], "w")' "$1"`,
	} {
		_, err := b.Run("bash", "-c", overwrite, "bash", lock)
		require.ErrorContains(t, err, "Device or resource busy", overwrite)
	}
	other := testcluster.StartShell(t, b, dir)
	for call, code := range map[string]int{"acquire . --holder other": 75, "release .": 78, "run . --holder other -- true": 75} {
		_, err := other.Do(c.Program + " beads " + call)
		require.ErrorContains(t, err, fmt.Sprint("exit status ", code))
		require.ErrorContains(t, err, "locked by me (process "+pid+" on a)")
	}
	other.Fails(c.Program+" beads check .", "exit status 75")
	require.Equal(t, content, b.MustRun(t, "cat", lock))

	holder.Process.Kill()
	c.AwaitGone(t, ".beads/.exclusive-lock", a, b)
	requireDaemon("false \"\" \n")
	require.Equal(t, "No lock\n", b.MustRun(t, c.Program, "beads", "check", dir))
	require.Equal(t, "mine\n", b.MustRun(t, c.Program, "beads", "run", dir, "--holder", "other", "--", "echo", "mine"))
}

// TestBeadsStaleElsewhere: what the mount says of a lock counts, not what can be seen from here. By a rule a lock stays
// after its process has ended, and another host is called like this one, or a container.
func TestBeadsStaleElsewhere(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 2)
	a, b := c.Nodes[0].Host, c.Nodes[1].Host
	daemon, dir, lock := buildDaemon(t), c.Path(".beads"), ".beads/.exclusive-lock"
	c.Nodes[0].SetRule(t, ".exclusive-lock", "--on-stale", "keep")
	b.MustRun(t, "mkdir", dir)
	a.MustRun(t, "sh", "-c", "echo 20000 > /proc/sys/kernel/ns_last_pid") // which b does not have
	take := func() *testcluster.Shell {
		holder := testcluster.StartShell(t, a, "/")
		holder.Must(c.Program + " beads acquire " + dir + " --holder me")
		return holder
	}
	asA := func(args ...string) (string, error) {
		return b.Run("unshare", append([]string{"--uts", "sh", "-c", `hostname a && "$@"; exit $?`, "sh"}, args...)...)
	}

	holder := take()
	said, err := asA(daemon, dir)
	require.NoError(t, err)
	require.Equal(t, "true \"me\" Skipping database (locked by me)\n", said)
	_, err = asA(c.Program, "beads", "acquire", dir, "--holder", "other")
	require.ErrorContains(t, err, "exit status 75")
	require.ErrorContains(t, err, "not acquired: locked by me (process ")
	said = a.MustRun(t, "unshare", "--pid", "--fork", "--mount-proc", daemon, dir)
	require.Equal(t, "true \"me\" Skipping database (locked by me)\n", said, "in a container with the name of its host")
	c.RequireHeld(t, lock, a, b)
	require.Equal(t, "yes", c.Xattr(t, b, lock, "watched"))

	holder.Process.Kill()
	c.AwaitState(t, b, lock, "stale")
	require.NotContains(t, b.MustRun(t, "python3", "-c", "import os, sys; print(os.listxattr(sys.argv[1]))", c.Path(lock)), "watched")
	require.Contains(t, b.MustRun(t, c.Program, "beads", "check", dir), "Stale lock of me: ")
	require.Equal(t, "false \"me\" Removed stale lock (me), proceeding with sync\n", b.MustRun(t, daemon, dir))
	for _, call := range []string{"acquire " + dir + " --holder other", "release " + dir} {
		take().Process.Kill()
		c.AwaitState(t, b, lock, "stale")
		testcluster.StartShell(t, b, "/").Must(c.Program + " beads " + call + " && rm -f " + c.Path(lock))
	}
}

// TestBeadsRunLosesItsLock takes the lock of a running command away by force, from another host.
func TestBeadsRunLosesItsLock(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 2)
	a, b := c.Nodes[0].Host, c.Nodes[1].Host
	a.MustRun(t, "mkdir", c.Path(".beads"))
	lock := ".beads/.exclusive-lock"
	run, dir := startRun(t, c, a, lock, "--format", "beads")
	_, err := b.Run(c.Program, "rm", c.Path(lock))
	require.ErrorContains(t, err, "beads lock of a-")
	require.ErrorContains(t, err, "--force breaks the lock")
	b.MustRun(t, c.Program, "rm", "--force", c.Path(lock))
	awaitFile(t, filepath.Join(dir, "told"))
	require.ErrorContains(t, run.Wait(), "exit status 124")
	require.Contains(t, run.Log(), "the lock was lost while the command ran")
}
