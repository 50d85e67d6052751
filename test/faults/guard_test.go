package faults

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/testcluster"
)

// TestKilledWhileAnswering kills a mount's process between the moment in which it stands by a creation
// and the one in which the kernel hears of it. The caller is told all the same, so the name has an owner.
func TestKilledWhileAnswering(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	c.Program = testcluster.FaultyProgram(t)
	g := c.AddGuest(t, "m")
	server := c.Nodes[0].Host
	for _, form := range []struct{ name, prepare, take string }{
		{"mkdir", "true", "mkdir lock"},
		{"symlink", "true", "ln -sT me lock"},
		{"link", "echo > token", "ln -T token lock"},
		{"rename", "echo > token", "mv -nT token lock"},
		{"open", "true", "python3 -c 'import os; os.open(\"lock\", os.O_CREAT | os.O_EXCL)'"},
	} {
		t.Run(form.name, func(t *testing.T) {
			server.MustRun(t, "sh", "-c", "cd "+c.Mount+"; rm -rf lock token; "+form.prepare)
			g.Environment = []string{"LOCKFS_TEST_FAULT=die-answering"}
			g.Start(t)
			g.Host.MustRun(t, "sh", "-c", "cd "+c.Mount+"; "+form.take) // says that it has the lock
			require.Error(t, g.Daemon.Wait(), "killed")
			c.AwaitDeadMount(t, g.Host)
			server.MustRun(t, "stat", c.Path("lock"))

			g.Environment = nil
			g.Start(t)
			g.Host.MustRun(t, "stat", c.Path("lock"))
			require.NoError(t, g.Daemon.Stop())
		})
	}
}

// TestKilledAsItIsAsked kills a mount's process between the two questions of an open(2) that creates, where another process is to go on with
// the mount, and none does. Whoever waits is told all the same, once the guard has given that up.
func TestKilledAsItIsAsked(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	c.Program = testcluster.FaultyProgram(t)
	g := c.AddGuest(t, "m")
	g.Environment = []string{"LOCKFS_SUPERVISED=1", "LOCKFS_TEST_FAULT=die-asked"}
	g.Start(t)
	g.Host.MustRun(t, "python3", "-c", "import os; os.open('"+c.Path("lock")+"', os.O_CREAT | os.O_EXCL)") // says that it has the lock
	require.Error(t, g.Daemon.Wait(), "killed")
	c.AwaitDeadMount(t, g.Host)
	c.Nodes[0].Host.MustRun(t, "stat", c.Path("lock"))
}
