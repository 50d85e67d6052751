package operation

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// requireVersion waits until a node says that the cluster runs at a version.
func requireVersion(t testing.TB, n *testcluster.Node, want uint32) {
	t.Helper()
	hosts.Eventually(t, fmt.Sprintf("%s says that the cluster runs at version %d", n.Name, want), func() (string, bool) {
		s, err := n.Status()
		return fmt.Sprintf("%+v %v", s, err), err == nil && s.ClusterVersion == want
	})
}

// requireKnown waits until the nodes know that the newest version that the program of one knows is this.
func requireKnown(t testing.TB, n *testcluster.Node, newest uint32) {
	t.Helper()
	hosts.Eventually(t, fmt.Sprintf("%s knows version %d", n.Name, newest), func() (string, bool) {
		s, err := n.Status()
		for _, node := range s.Nodes {
			if node.Name == n.Name && node.OldestVersion == 1 && node.NewestVersion == newest {
				return "", true
			}
		}
		return fmt.Sprintf("%+v %v", s, err), false
	})
}

// sums are the checksums of all files below a directory of a host, and what else there is, with modes, owners and times of change.
func sums(t testing.TB, h *hosts.Host, dir string) string {
	t.Helper()
	return h.MustRun(t, "sh", "-ec", `cd "$1"; find . -printf '%p %y %m %u %g %s %T@\n' | sort; find . -type f -print0 | sort -z | xargs -0 sha256sum`,
		"sh", dir)
}

// TestRollingUpgrade brings three servers and two mounts to the program of the next version, one after the other and one of them back
// before the last has it, while contenders are at work on all and what was acknowledged is written down. Whoever is killed on the way is
// succeeded by the other program.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	next := testcluster.NextProgram(t)
	c := testcluster.StartCluster(t, 3)
	a, b := c.Nodes[0], c.Nodes[1]
	first, second := c.AddGuest(t, "m"), c.AddGuest(t, "n")
	first.Start(t)
	second.Start(t)
	jobs := contenders(t, c, a.Host, first.Host, second.Host)
	writers := make([]*writer, 0, 2)
	for _, h := range []*hosts.Host{first.Host, b.Host} {
		writers = append(writers, startWriter(t, c, h))
	}
	note := func(n *testcluster.Node, text ...string) (string, error) {
		return n.Host.Run(next, append(append([]string{"note"}, text...), n.Asked()...)...)
	}
	requireNoNote := func() {
		t.Helper()
		for _, text := range [][]string{nil, {"rack 2 is next"}} {
			_, err := note(a, text...)
			require.ErrorContains(t, err, "not all servers and mounts of the cluster know it yet")
		}
	}
	run := func(n *testcluster.Node, program string, newest uint32) {
		t.Helper()
		n.Kill()
		n.Other = program
		n.Start(t)
		requireKnown(t, n, newest)
		jobs.AwaitProgress(t, a)
	}

	requireVersion(t, a, 1)
	run(b, next, 2)
	requireNoNote()
	run(b, "", 1)
	for _, n := range c.Nodes {
		run(n, next, 2)
	}
	for _, g := range []*testcluster.Guest{first, second} {
		hosts.Eventually(t, "the leader waits for a mount", func() (string, bool) {
			log := c.Leader().Server.Log()
			return log, strings.Contains(log, "the mount on "+second.Host.Name()+" knows version 1") ||
				g == first && strings.Contains(log, "the mount on "+first.Host.Name()+" knows version 1")
		})
		requireVersion(t, a, 1)
		requireNoNote()
		g.Kill()
		g.Other = next
		g.Start(t)
		jobs.AwaitProgress(t, a)
	}
	for _, n := range c.Nodes {
		requireVersion(t, n, 2)
	}
	_, err := note(a, "rack 2 is next")
	require.NoError(t, err)
	run(b, next, 2)
	for _, n := range c.Nodes {
		text, err := note(n)
		require.NoError(t, err)
		require.Equal(t, "rack 2 is next\n", text)
	}
	requireOldIsRefused(t, c, second)
	for _, w := range writers {
		w.requireAllThere(t, c)
	}
	jobs.Finish(t, c)
	c.RequireSameState(t)
}

// requireOldIsRefused starts servers and a mount of a cluster at the second version with the program before.
func requireOldIsRefused(t testing.TB, c *testcluster.Cluster, guest *testcluster.Guest) {
	t.Helper()
	old := c.Nodes[2]
	next := old.Other
	old.Kill()
	before := sums(t, old.Host, old.Data)
	old.Other = ""
	old.Launch()
	require.Error(t, old.Server.Wait())
	require.Contains(t, old.Server.Log(), "the cluster runs at version 2, and this program knows 1")
	require.Contains(t, old.Server.Log(), "update this node")
	require.Equal(t, before, sums(t, old.Host, old.Data))
	old.Other = next
	old.Start(t)

	stranger := c.Add(t)
	c.Nodes = c.Nodes[:3]
	stranger.Launch()
	require.Error(t, stranger.Server.Wait())
	require.Contains(t, stranger.Server.Log(), "the cluster runs at version 2, and the program of d knows 1: install a newer one there")

	guest.Kill()
	before = sums(t, guest.Host, "/run")
	guest.Other = ""
	guest.Launch(t)
	require.Error(t, guest.Daemon.Wait())
	require.Contains(t, guest.Daemon.Log(), "the cluster runs at version 2, and this program knows 1")
	require.Equal(t, before, sums(t, guest.Host, "/run"))
	guest.Other = next
	guest.Start(t)
}

// TestAMountThatWasAwayIsUpgradedInPlace has a mount's session end while it is cut off, and all others go to the next version. It says what to
// do, and what it says is enough: with the newer program installed and a SIGHUP it is as it was, and was there all the time.
func TestAMountThatWasAwayIsUpgradedInPlace(t *testing.T) {
	t.Parallel()
	c := testcluster.NewCluster(t, "--session-term=2s", "--op-timeout=2s")
	n := c.Add(t)
	n.Start(t)
	away := c.AddGuest(t, "away", "--op-timeout=2s")
	away.Other = filepath.Join(c.Net.Dir(), "installed", "lockfs")
	install := func(program string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(away.Other), 0o755))
		require.NoError(t, os.Link(program, away.Other+".new"))
		require.NoError(t, os.Rename(away.Other+".new", away.Other))
	}
	install(c.Program)
	away.Start(t)
	away.Host.MustRun(t, "mkdir", c.Path("made"))

	away.Host.Cut()
	n.Kill()
	n.Other = testcluster.NextProgram(t)
	n.Start(t)
	requireVersion(t, n, 2)
	away.Host.Heal()
	require.NoError(t, away.Daemon.WaitOutput("the cluster runs at version 2, and the program of the mount on away knows 1: install a newer one there"))
	_, err := away.Host.Run("mkdir", c.Path("refused"))
	require.Error(t, err)
	select {
	case <-away.Daemon.Ended():
		require.Fail(t, "the mount has ended", away.Daemon.Log())
	default:
	}

	install(testcluster.NextProgram(t))
	away.Daemon.Signal(syscall.SIGHUP)
	require.NoError(t, away.Daemon.WaitOutput("went on with the mount"))
	away.Host.MustRun(t, "mkdir", c.Path("again"))
	there := testcluster.ListDir(t, n, c.Mount)
	require.Contains(t, there, "again")
	require.Contains(t, there, "made")
	require.Len(t, there, 2)
}

// TestAnOlderProgramLeavesNewerDataAlone has the program before meet what a cluster at the second version has written: the data directory
// of its server, with what only that version has in the log, and a backup. Each command says which versions fit, and changes nothing.
func TestAnOlderProgramLeavesNewerDataAlone(t *testing.T) {
	t.Parallel()
	c := testcluster.NewCluster(t)
	n := c.Add(t)
	n.Other = testcluster.NextProgram(t)
	n.Start(t)
	requireVersion(t, n, 2)
	n.Host.MustRun(t, n.Other, append([]string{"note", "rack 2 is next"}, n.Asked()...)...)
	n.Host.MustRun(t, "mkdir", c.Path("made"))
	file, restored := filepath.Join(c.Net.Dir(), "backup"), n.Data+".restored"
	n.Host.MustRun(t, n.Other, append([]string{"backup", file}, n.Asked()...)...)
	n.Stop(t)

	before := sums(t, n.Host, n.Data)
	for _, args := range [][]string{
		{"server", "--data", n.Data, "--name", n.Name, "--addr", n.Addr(), "--http-addr", n.HTTPAddr(), "--insecure", "--mount", c.Mount},
		{"server", "recover", "--data", n.Data},
		{"backup", "verify", file},
		{"restore", file, "--data", restored, "--name", n.Name, "--addr", n.Addr(), "--insecure"},
	} {
		_, err := n.Host.Run(c.Program, args...)
		require.ErrorContains(t, err, "runs at version 2, and this program knows 1", "%q", args)
		require.Equal(t, before, sums(t, n.Host, n.Data), "%q", args)
	}
	require.NoDirExists(t, restored)
	n.Start(t)
	require.Contains(t, testcluster.ListDir(t, n, c.Mount), "made")
}

// writer makes directories, and writes those down that were acknowledged.
type writer struct {
	process   *hosts.Process
	dir, told string
}

func startWriter(t testing.TB, c *testcluster.Cluster, h *hosts.Host) *writer {
	t.Helper()
	w := &writer{dir: c.Path("writer-" + h.Name()), told: filepath.Join(c.Net.Dir(), h.Name()+".told")}
	h.MustRun(t, "mkdir", w.dir)
	w.process = h.Start("sh", "-c", `i=0; while [ ! -e "$2.stop" ]; do i=$((i + 1)); mkdir "$1/$i" && echo "$i" >> "$2"; done; exit 0`, "sh", w.dir, w.told)
	return w
}

// requireAllThere ends the writer, and requires that nothing of what it was told is missing.
func (w *writer) requireAllThere(t testing.TB, c *testcluster.Cluster) {
	t.Helper()
	require.NoError(t, os.WriteFile(w.told+".stop", nil, 0o600))
	require.NoError(t, w.process.Wait())
	acknowledged, err := os.ReadFile(w.told)
	require.NoError(t, err)
	present := testcluster.ListDir(t, c.Nodes[0], w.dir)
	require.Greater(t, len(present), 10)
	for number := range strings.FieldsSeq(string(acknowledged)) {
		require.Contains(t, present, number)
	}
}
