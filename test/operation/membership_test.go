package operation

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// TestServersMoveAndChangeTheirVotesUnderLoad starts each of three servers with another address, takes and gives votes, while a
// host makes files one after the other. All that it was told are made are there at the end.
func TestServersMoveAndChangeTheirVotesUnderLoad(t *testing.T) {
	t.Parallel()
	c := testcluster.StartSecureCluster(t, 3)
	for i, n := range c.Nodes {
		worker := c.Others(n)[0]
		told := c.Net.Dir() + fmt.Sprintf("/made%d", i)
		work := worker.Host.Start("sh", "-c", `i=0; while [ ! -e "$2.stop" ]; do i=$((i+1)); mkdir "$1/$i" && echo $i >> "$2"; done; exit 0`,
			"sh", c.Path(), told)
		n.Stop(t)
		n.Port = "7430"
		n.Start(t)
		hosts.Eventually(t, "its new address is known", func() (string, bool) {
			text, err := worker.Lockfs("member", "list")
			return fmt.Sprint(text, err), err == nil && strings.Contains(text, n.Addr()) && strings.Count(text, n.Host.Addr()+":") == 1
		})
		_, err := worker.Lockfs("member", "demote", n.Name)
		require.NoError(t, err)
		hosts.Eventually(t, "its vote is seen to be gone", func() (string, bool) {
			list, err := worker.Lockfs("member", "list")
			require.NoError(t, err)
			status, err := worker.Lockfs("status")
			require.NoError(t, err)
			return list + status, strings.Count(list, "non-voter") == 1 && strings.Contains(status, "2 voters are an even number")
		})
		_, err = worker.Lockfs("member", "promote", n.Name)
		require.NoError(t, err)
		worker.Host.MustRun(t, "touch", told+".stop")
		require.NoError(t, work.Wait(), "%s", work.Log())
		made := strings.Fields(worker.Host.MustRun(t, "cat", told))
		require.NotEmpty(t, made)
		present := testcluster.ListDir(t, n, c.Path())
		for _, name := range made {
			require.Contains(t, present, name)
		}
		worker.Host.MustRun(t, "sh", "-c", `rmdir "$1"/[0-9]*`, "sh", c.Path())
	}
	c.RequireSameState(t)
}

// TestARemovedServerSettlesWhatItsMountWasAskedFor removes servers, then one that leads, while programs make and remove directories on
// their mounts. One that was told that it failed has done nothing.
func TestARemovedServerSettlesWhatItsMountWasAskedFor(t *testing.T) {
	t.Parallel()
	c := testcluster.StartSecureCluster(t, 5)
	for _, n := range []*testcluster.Node{c.Others(c.Leader())[3], c.Leader()} {
		admin := c.Others(n)[0]
		dir := c.Path("of-" + n.Name)
		busy := n.Host.Start("sh", "-c", `mkdir "$1"; for worker in 0 1 2 3 4 5 6 7; do
			while mkdir "$1/$worker" && echo made $worker && rmdir "$1/$worker" && echo gone $worker; do :; done &
			done; wait`, "sh", dir)
		for worker := range 8 {
			require.NoError(t, busy.WaitOutput(fmt.Sprintf("gone %d\n", worker)))
		}
		_, err := admin.Lockfs("member", "remove", n.Name)
		require.NoError(t, err)
		require.NoError(t, busy.Wait())
		require.Error(t, n.Server.Wait())
		require.Contains(t, n.Server.Log(), "this node was removed from the cluster")
		require.NotContains(t, n.Server.Log(), "did not stop cleanly")
		there := strings.Fields(admin.Host.MustRun(t, "ls", dir))
		c.Nodes = c.Others(n)
		for worker := range 8 {
			said := busy.Stdout()
			last := said[:strings.LastIndex(said, fmt.Sprintf(" %d\n", worker))]
			require.Equal(t, strings.HasSuffix(last, "made"), slices.Contains(there, fmt.Sprint(worker)), "%s: %d in %s, after %s", n.Name, worker, there, said)
		}
	}
}

// TestEachServerIsReplacedUnderLoad replaces three servers by three others, one after the other, and has the cluster remove one
// that is dead by itself. Two mounts that were there before outlive them all, with contenders for the same locks on both.
func TestEachServerIsReplacedUnderLoad(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 3, "--remove-dead", "10s")
	first, second := c.AddGuest(t, "m"), c.AddGuest(t, "n")
	first.Start(t)
	second.Start(t)
	jobs := contenders(t, c, first.Host, second.Host)
	told := c.Net.Dir() + "/made"
	for i := range 3 {
		old, fresh := c.Nodes[i], c.Add(t)
		fresh.Flags = []string{"--join", c.Nodes[i+1].Addr() + "," + c.Nodes[i+2].Addr()}
		fresh.Start(t)
		work := fresh.Host.Start("sh", "-c", `while [ ! -e "$2.stop" ]; do i=$((i+1)); mkdir "$1/$3.$i" && echo $3.$i >> "$2"; done; exit 0`,
			"sh", c.Path(), told, fresh.Name)
		_, err := fresh.Lockfs("member", "replace", old.Name, fresh.Name)
		require.NoError(t, err)
		old.Kill()
		c.RequireService(t, fresh)
		jobs.AwaitProgress(t, fresh)
		fresh.Host.MustRun(t, "touch", told+".stop")
		require.NoError(t, work.Wait(), "%s", work.Log())
		fresh.Host.MustRun(t, "rm", told+".stop")
	}
	last := c.Nodes[5]
	awaitMembers(t, last.Lockfs, "d", "e", "f")
	present := testcluster.ListDir(t, last, c.Path())
	made := strings.Fields(last.Host.MustRun(t, "cat", told))
	require.NotEmpty(t, made)
	for _, name := range made {
		require.Contains(t, present, name)
	}
	c.Nodes[3].Kill()
	hosts.Eventually(t, "the dead server is removed", func() (string, bool) {
		text, err := last.Lockfs("member", "list")
		return fmt.Sprint(text, err), err == nil && strings.Count(text, "voter") == 2
	})
	c.RequireService(t, last)
	c.Nodes = c.Nodes[4:]
	jobs.Finish(t, c)
	c.RequireSameState(t)
}
