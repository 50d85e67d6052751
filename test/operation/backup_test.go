package operation

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// verified is what `lockfs backup verify --json` says. Only what tests use is here.
type verified struct {
	Node      string `json:"node"`
	Index     uint64 `json:"index"`
	StateHash string `json:"state_hash"`
}

func verify(t testing.TB, n *testcluster.Node, c *testcluster.Cluster, path string) (v verified) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(n.Host.MustRun(t, c.Program, "backup", "verify", "--json", path)), &v))
	return v
}

// tokenOf is the fencing token of a lock.
func tokenOf(t testing.TB, h *hosts.Host, path string) (token uint64) {
	t.Helper()
	text := h.MustRun(t, "python3", "-c", "import os,sys; print(os.getxattr(sys.argv[1], 'user.lockfs.token').decode())", path)
	_, err := fmt.Sscan(text, &token)
	require.NoError(t, err, text)
	return token
}

// contenders are jobs of two clients on some hosts.
func contenders(t testing.TB, c *testcluster.Cluster, on ...*hosts.Host) testcluster.Jobs {
	t.Helper()
	var jobs testcluster.Jobs
	for _, kind := range testcluster.Clients[:2] {
		dir := c.Path(kind.Name)
		on[0].MustRun(t, "mkdir", dir)
		w := testcluster.NewWitness(t, filepath.Join(c.Net.Dir(), kind.Name+".witness"))
		jobs = append(jobs, testcluster.StartJob(t, kind, dir, w, testcluster.Rounds(12, 50), slices.Concat(on, on)...))
	}
	return jobs
}

// TestBackupsUnderLoadAreRestoredElsewhere takes backups from each server while contenders are at work, or stopped wherever they
// were, and begins another cluster with one.
func TestBackupsUnderLoadAreRestoredElsewhere(t *testing.T) {
	t.Parallel()
	own := filepath.Join(t.TempDir(), "own")
	c := testcluster.StartInsecureCluster(t, 3, "--backup-dir", own, "--backup-every", "2s", "--backup-keep", "2")
	a := c.Nodes[0]
	jobs := contenders(t, c, c.Hosts()...)
	var acknowledged []string
	for round := range testcluster.Rounds(4, 20) {
		n := c.Nodes[round%3]
		jobs.AwaitProgress(t, a)
		acknowledged = append(acknowledged, fmt.Sprint("acknowledged", round))
		n.Host.MustRun(t, "mkdir", c.Path(acknowledged[round]))
		path := filepath.Join(c.Net.Dir(), fmt.Sprint("backup", round))
		_, err := n.Lockfs("backup", path)
		require.NoError(t, err)
		require.Equal(t, n.Name, verify(t, n, c, path).Node)

		for _, job := range jobs {
			for _, worker := range job.Workers {
				worker.Freeze()
			}
		}
		hosts.Eventually(t, "a backup and a status of one index", func() (string, bool) {
			_, err := n.Lockfs("backup", path)
			require.NoError(t, err)
			v := verify(t, n, c, path)
			s, err := n.Status()
			require.NoError(t, err)
			same := 0
			for _, node := range s.Nodes {
				if node.StateIndex == v.Index {
					require.Equal(t, node.StateHash, v.StateHash)
					same++
				}
			}
			return fmt.Sprintf("%+v of %+v", v, s.Nodes), same > 0
		})
		for _, job := range jobs {
			for _, worker := range job.Workers {
				worker.Thaw()
			}
		}
	}
	piped := a.Host.MustRun(t, "sh", append([]string{"-ec", `"$0" backup - "$@" | "$0" backup verify -`, c.Program}, a.Asked()...)...)
	require.Contains(t, piped, "by node a ")
	a.Host.MustRun(t, "sh", "-c", "set -C; > "+c.Path("held"))
	_, err := a.Lockfs("backup", filepath.Join(c.Net.Dir(), "last"))
	require.NoError(t, err)
	a.Host.MustRun(t, "sh", "-c", "set -C; > "+c.Path("lost"))
	held, lost := tokenOf(t, a.Host, c.Path("held")), tokenOf(t, a.Host, c.Path("lost"))
	jobs.Finish(t, c)
	for _, n := range c.Nodes {
		hosts.Eventually(t, n.Name+" has made backups by itself", func() (string, bool) {
			found, err := filepath.Glob(filepath.Join(own, "lockfs-"+n.Name+"-*.backup"))
			require.NoError(t, err)
			return fmt.Sprint(found), len(found) > 0
		})
	}

	other := c.Add(t)
	c.Nodes = c.Nodes[:3]
	restore := []string{"restore", filepath.Join(c.Net.Dir(), "last"), "--data", other.Data, "--name", other.Name, "--addr", other.Addr(), "--insecure"}
	other.Host.MustRun(t, c.Program, restore...)
	_, err = other.Host.Run(c.Program, restore...)
	require.ErrorContains(t, err, "is not empty")
	for _, n := range c.Nodes {
		n.Kill()
	}
	other.Start(t)
	awaitMembers(t, other.Lockfs, other.Name)
	present := testcluster.ListDir(t, other, c.Mount)
	for _, name := range acknowledged {
		require.Contains(t, present, name)
	}
	require.Equal(t, "file ", present["held"])
	require.NotContains(t, present, "lost")
	require.Equal(t, held, tokenOf(t, other.Host, c.Path("held")))
	_, err = other.Host.Run("sh", "-c", "set -C; > "+c.Path("held"))
	require.Error(t, err, "it is held")
	other.Host.MustRun(t, "sh", "-c", "set -C; > "+c.Path("lost"))
	require.Greater(t, tokenOf(t, other.Host, c.Path("lost")), lost)
	other.Stop(t)
	other.Start(t)
	require.Contains(t, testcluster.ListDir(t, other, c.Mount), "lost")
}

// TestALostMajorityIsRecovered kills all servers while contenders are at work on a mount and on the server that survives, one of them
// earlier than the others. What was acknowledged to anybody is there afterwards, and the contenders go on, also beside the others on
// their old data, to which no mount goes back.
func TestALostMajorityIsRecovered(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 3)
	a, b, early := c.Nodes[0], c.Nodes[1], c.Nodes[2]
	client := c.AddClient(t, "m")
	c.MountOn(t, client, c.Servers(), "--op-timeout", "10s")
	late := c.AddClient(t, "l")
	mounted := c.MountOn(t, late, c.Servers(), "--op-timeout", "10s")
	jobs := contenders(t, c, a.Host, client)
	client.MustRun(t, "mkdir", c.Path("acknowledged"))
	told := filepath.Join(c.Net.Dir(), "told")
	writer := client.Start("sh", "-c", `i=0; while [ ! -e "$2.stop" ]; do i=$((i + 1)); mkdir "$1/$i" && echo "$i" >> "$2"; done; exit 0`, "sh", c.Path("acknowledged"), told)
	jobs.AwaitProgress(t, a)
	token := func(name string) uint64 {
		client.MustRun(t, "sh", "-c", "set -C; > "+c.Path(name))
		return tokenOf(t, client, c.Path(name))
	}
	before := token("before")
	early.Kill()
	jobs.AwaitProgress(t, a)
	b.Kill()
	_, err := a.Host.Run(c.Program, "server", "recover", "--data", a.Data)
	require.ErrorContains(t, err, "in use by another process")
	a.Kill()

	inspect := func(n *testcluster.Node) string {
		path := filepath.Join(c.Net.Dir(), n.Name+".json")
		text := n.Host.MustRun(t, c.Program, "server", "inspect", "--data", n.Data, "--json")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	type report struct {
		Newer      []string `json:"newer"`
		Uncompared int      `json:"uncompared"`
		GoesOn     uint64   `json:"goes_on"`
	}
	recovery := func(n *testcluster.Node, flags ...string) (r report) {
		args := append([]string{"server", "recover", "--data", n.Data, "--json"}, flags...)
		require.NoError(t, json.Unmarshal([]byte(n.Host.MustRun(t, c.Program, args...)), &r))
		return r
	}
	require.Contains(t, recovery(early, "--compare", inspect(a), "--dry-run").Newer, a.Name)
	require.Equal(t, 1, recovery(a, "--dry-run").Uncompared)
	sure := recovery(a, "--compare", inspect(early), "--dry-run")
	require.Empty(t, sure.Newer)
	require.Zero(t, sure.Uncompared, "nothing that was acknowledged is missing")
	require.NotZero(t, recovery(a, "--compare", inspect(early)).GoesOn)

	a.Start(t)
	awaitMembers(t, a.Lockfs, a.Name)
	jobs.AwaitProgress(t, a)
	hosts.Eventually(t, "the mount is with the recovered cluster", func() (string, bool) {
		_, err := late.Run("mkdir", "-p", c.Path("found"))
		return fmt.Sprint(err), err == nil
	})
	// The others are started on their old data, as nobody should do: they are a majority of the lost cluster.
	b.Launch()
	early.Start(t)
	b.AwaitReady(t)
	mounted.Kill()
	c.AwaitDeadMount(t, late)
	c.MountOn(t, late, b.Addr()+","+early.Addr()+","+a.Addr(), "--op-timeout", "10s")
	late.MustRun(t, "mkdir", c.Path("remounted"))
	require.Contains(t, testcluster.ListDir(t, a, c.Mount), "remounted")
	require.NotContains(t, testcluster.ListDir(t, b, c.Mount), "found")
	jobs.AwaitProgress(t, a)
	for _, n := range []*testcluster.Node{b, early} {
		n.Kill()
		require.NoError(t, os.RemoveAll(n.Data))
		n.Start(t)
	}
	require.NoError(t, os.WriteFile(told+".stop", nil, 0o600))
	require.NoError(t, writer.Wait())
	acknowledged, err := os.ReadFile(told)
	require.NoError(t, err)
	present := testcluster.ListDir(t, a, c.Path("acknowledged"))
	for number := range strings.FieldsSeq(string(acknowledged)) {
		require.Contains(t, present, number)
	}
	require.Greater(t, len(present), 10)
	require.Greater(t, token("after"), before+1<<39)
	jobs.Finish(t, c)
	c.RequireSameState(t)
}

// TestRestoreThatWasKilledIsRepeated kills lockfs restore at each file that it makes. A server does not start in what is left, and the next
// restore makes all of it.
func TestRestoreThatWasKilledIsRepeated(t *testing.T) {
	t.Parallel()
	c := testcluster.StartSecureCluster(t, 1)
	a := c.Nodes[0]
	a.Host.MustRun(t, "sh", "-c", "set -C; > "+c.Path("held"))
	held, file := tokenOf(t, a.Host, c.Path("held")), filepath.Join(c.Net.Dir(), "killed.backup")
	_, err := a.Lockfs("backup", file)
	require.NoError(t, err)
	restore := []string{"restore", file, "--data", a.Data + ".new", "--name", a.Name, "--addr", a.Addr(), "--ca-key", filepath.Join(a.Data, "ca.key")}
	a.Kill()
	a.Data += ".new"
	kills := 0
	for _, made := range []string{"lock", "incomplete", "ca.key", "identity", "snapshots", "votes.db", "log", "node.json"} {
		p := a.Host.Start(c.Program, restore...)
		hosts.Eventually(t, "restore makes "+made, func() (string, bool) {
			_, err := os.Lstat(filepath.Join(a.Data, made))
			return fmt.Sprint(err), err == nil
		})
		p.Kill()
		if _, err := os.Lstat(filepath.Join(a.Data, "incomplete")); err != nil && made != "lock" {
			continue // it was done before
		}
		kills++
		if made != "lock" {
			_, err := a.Host.Run(c.Program, "server", "--data", a.Data, "--name", a.Name, "--addr", a.Addr())
			require.ErrorContains(t, err, "`lockfs restore` was interrupted; run it again")
		}
	}
	require.Positive(t, kills)
	t.Logf("killed %d times", kills)
	if _, err := os.Lstat(filepath.Join(a.Data, "incomplete")); err != nil {
		require.NoError(t, os.RemoveAll(a.Data))
	}
	a.Host.MustRun(t, c.Program, restore...)
	require.NoFileExists(t, filepath.Join(a.Data, "incomplete"))
	a.Start(t)
	awaitMembers(t, a.Lockfs, a.Name)
	require.Equal(t, held, tokenOf(t, a.Host, c.Path("held")))
}
