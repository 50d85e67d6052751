package kernellocks

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

const reader = "setpriv --reuid 65534 --regid 65534 --clear-groups"

// asReader runs a command in the directory of the mount as a user who may only read the files of others.
func asReader(h *hosts.Host, c *testcluster.Cluster, command string) (string, error) {
	return h.Run("sh", "-c", `cd "$1" && exec `+reader+` sh -c "$2"`, "sh", c.Mount, command)
}

// TestAReaderDisarmsNoLock of another user's process: with flock -s on the file it changes neither the guard nor what becomes of the
// lock when its process is killed.
func TestAReaderDisarmsNoLock(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 1)
	g, far := c.AddGuest(t, "m"), c.AddGuest(t, "n")
	g.Start(t)
	far.Start(t)
	everywhere := append(c.Hosts(), g.Host, far.Host)
	for i, from := range everywhere {
		lock := fmt.Sprintf("victim-%d.lock", i)
		holder := c.StartHolder(t, g.Host, lock, testcluster.PidContent)
		_, err := asReader(from, c, "flock -n -s "+lock+" true && ! flock -n "+lock+" false")
		require.NoError(t, err)
		for _, h := range everywhere {
			if h != g.Host {
				_, err := h.Run("rm", "-f", c.Path(lock))
				require.ErrorContains(t, err, "Device or resource busy")
			}
		}
		c.RequireHeld(t, lock, everywhere...)
		holder.Process.Kill()
		c.AwaitGone(t, lock, everywhere...)
	}

	t.Run("while it still has its own", func(t *testing.T) {
		holder := c.StartHolder(t, g.Host, "postponed.lock", testcluster.PidContent)
		reader := testcluster.StartShell(t, far.Host, c.Mount)
		reader.Must("exec 9<postponed.lock; flock -s 9")
		_, err := far.Host.Run("rm", "-f", c.Path("postponed.lock"))
		require.ErrorContains(t, err, "Device or resource busy")
		holder.Process.Kill()
		for _, h := range everywhere {
			c.AwaitState(t, h, "postponed.lock", "stale")
		}
		reader.Must("exec 9<&-")
		c.AwaitGone(t, "postponed.lock", everywhere...)
	})

	t.Run("in the moment before its holder is written", func(t *testing.T) {
		racer := far.Host.Start("sh", "-c", "cd "+c.Mount+" && exec "+reader+" sh -c 'while :; do (exec 9<raced.lock && flock -n -s 9) 2>/dev/null; done'")
		holder := testcluster.StartShell(t, g.Host, c.Mount)
		for range testcluster.Rounds(20, 200) {
			holder.Must("(set -C; echo $$ >raced.lock)")
			_, err := c.Hosts()[0].Run("rm", "-f", c.Path("raced.lock"))
			require.ErrorContains(t, err, "Device or resource busy")
			holder.Must("rm raced.lock")
		}
		racer.Kill()
	})

	// The family of the holder may still make it a file that only its kernel lock guards.
	t.Run("but its own family does", func(t *testing.T) {
		for _, step := range []string{"flock -n own.lock true", "exec 9<own.lock; flock -n 9; exec 9<&-", "sh -c 'sh -c \"flock own.lock true\"'"} {
			holder := c.StartHolder(t, g.Host, "own.lock", testcluster.PidContent)
			holder.Must(step)
			c.Hosts()[0].MustRun(t, "rm", c.Path("own.lock"))
		}
	})
}
