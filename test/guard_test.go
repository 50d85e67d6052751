package test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestKilledWhileAnswering kills a mount's process between the moment in which it stands by a creation
// and the one in which the kernel hears of it. The caller is told all the same, so the name has an owner.
func TestKilledWhileAnswering(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	c.program = FaultyProgram(t)
	g := c.addGuest(t, "m")
	server := c.nodes[0].host
	for _, form := range []struct{ name, prepare, take string }{
		{"mkdir", "true", "mkdir lock"},
		{"symlink", "true", "ln -sT me lock"},
		{"link", "echo > token", "ln -T token lock"},
		{"rename", "echo > token", "mv -nT token lock"},
		{"open", "true", "python3 -c 'import os; os.open(\"lock\", os.O_CREAT | os.O_EXCL)'"},
	} {
		t.Run(form.name, func(t *testing.T) {
			server.MustRun(t, "sh", "-c", "cd "+c.mount+"; rm -rf lock token; "+form.prepare)
			g.environment = []string{"LOCKFS_TEST_FAULT=die-answering"}
			g.start(t)
			g.host.MustRun(t, "sh", "-c", "cd "+c.mount+"; "+form.take) // says that it has the lock
			require.Error(t, g.daemon.Wait(), "killed")
			c.awaitDeadMount(t, g.host)
			server.MustRun(t, "stat", c.path("lock"))

			g.environment = nil
			g.start(t)
			g.host.MustRun(t, "stat", c.path("lock"))
			require.NoError(t, g.daemon.Stop())
		})
	}
}
