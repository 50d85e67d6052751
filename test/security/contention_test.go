package security

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// A contest is workers on all hosts of a cluster, which may not see a call fail.
type contest struct {
	jobs  []*testcluster.Job
	hosts []*hosts.Host
}

func startContest(t testing.TB, c *testcluster.Cluster, on ...*hosts.Host) *contest {
	t.Helper()
	x := &contest{hosts: on}
	for _, client := range []testcluster.Client{testcluster.Clients[0], testcluster.Clients[3]} {
		dir := c.Path(client.Name)
		on[0].MustRun(t, "mkdir", dir)
		w := testcluster.NewWitness(t, filepath.Join(c.Net.Dir(), "witness-"+client.Name))
		x.jobs = append(x.jobs, testcluster.StartJob(t, client, dir, w, 1, on...))
	}
	return x
}

// rounds is how often they have had their locks.
func (x *contest) rounds(t testing.TB) (sum int) {
	t.Helper()
	for _, j := range x.jobs {
		sum += j.Witness.Rounds(t, "")
	}
	return sum
}

// goOn waits until they have had them some more times.
func (x *contest) goOn(t testing.TB) {
	t.Helper()
	until := x.rounds(t) + 10*len(x.hosts)
	hosts.Eventually(t, "the workers go on", func() (string, bool) { return fmt.Sprint(x.rounds(t)), x.rounds(t) >= until })
}

// end requires that no call of theirs has failed, and that no two were inside at once.
func (x *contest) end(t testing.TB) {
	t.Helper()
	for _, j := range x.jobs {
		j.Witness.Stop(t)
	}
	for _, j := range x.jobs {
		j.Wait(t)
		require.Empty(t, j.Witness.Verdict(t))
		for _, h := range x.hosts {
			require.Empty(t, j.Errors(h))
		}
	}
}

// renewals is how often a daemon has renewed its certificate.
func renewals(p *hosts.Process) int {
	return strings.Count(p.Log(), "the certificate of this host was renewed")
}

// requireRenewals requires that all daemons renew so often more when something is done.
func requireRenewals(t testing.TB, more int, do func(), daemons ...*hosts.Process) {
	t.Helper()
	before := make(map[*hosts.Process]int)
	for _, p := range daemons {
		before[p] = renewals(p)
	}
	do()
	for _, p := range daemons {
		hosts.Eventually(t, "renewals on "+p.Host().Name(), func() (string, bool) {
			return fmt.Sprintf("%d before, now %d", before[p], renewals(p)), renewals(p) >= before[p]+more
		})
	}
}

// rotate has a new authority sign, and waits until all daemons have its certificates.
func rotate(t testing.TB, n *testcluster.Node, daemons ...*hosts.Process) {
	t.Helper()
	requireRenewals(t, 1, func() {
		_, err := n.Lockfs("ca", "rotate")
		require.NoError(t, err)
	}, daemons...)
}

func daemonsOf(c *testcluster.Cluster, guests ...*testcluster.Guest) (all []*hosts.Process) {
	for _, n := range c.Nodes {
		all = append(all, n.Server)
	}
	for _, g := range guests {
		all = append(all, g.Daemon)
	}
	return all
}

// TestRenewalsInterruptNobody has certificates of a few seconds, and connections and workers that outlive several.
func TestRenewalsInterruptNobody(t *testing.T) {
	t.Parallel()
	c := testcluster.NewCluster(t)
	c.Secure, c.Program = true, testcluster.FaultyProgram(t)
	for range 3 {
		n := c.Add(t)
		n.Environment = []string{"LOCKFS_TEST_CERTIFICATE_VALIDITY=15s"}
		n.Start(t)
	}
	m := c.AddGuest(t, "m")
	m.Start(t)
	x := startContest(t, c, append(c.Hosts(), m.Host)...)
	before := c.Nodes[0].AwaitSession(t, "m", "a session", testcluster.OneSession)
	refusals := func() (n int) {
		for _, daemon := range daemonsOf(c, m) {
			n += strings.Count(daemon.Log(), "a connection is refused")
		}
		return n
	}
	known := refusals() // by servers that learned later than others of a host that had just enrolled
	requireRenewals(t, 3, func() {}, daemonsOf(c, m)...)
	x.goOn(t)
	x.end(t)
	after := c.Nodes[0].AwaitSession(t, "m", "a session", testcluster.OneSession)
	require.Equal(t, before[0].ID, after[0].ID)
	require.Equal(t, known, refusals())
}

// A shownAuthority is one in `lockfs ca list --json`.
type shownAuthority struct {
	Fingerprint string `json:"fingerprint"`
}

func authorities(t testing.TB, n *testcluster.Node) (list []shownAuthority) {
	t.Helper()
	text, err := n.Lockfs("ca", "list", "--json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal([]byte(text), &list), text)
	return list
}

// atOnce is the second that a revocation may take, and many more for a machine that has other things to do.
const atOnce = 20 * time.Second

// TestRotationAndRevocationInterruptNobodyElse replaces the authority, twice, and shuts a host out, while all others contend.
func TestRotationAndRevocationInterruptNobodyElse(t *testing.T) {
	t.Parallel()
	c := testcluster.StartSecureCluster(t, 3, "--lock-delay", "1s")
	m, out := c.AddGuest(t, "m"), c.AddGuest(t, "out")
	m.Start(t)
	out.Start(t)
	x := startContest(t, c, append(c.Hosts(), m.Host)...)
	x.goOn(t)
	late := c.AddGuest(t, "late")
	for i := range 2 {
		old := authorities(t, c.Nodes[0])
		require.Len(t, old, 1)
		rotate(t, c.Nodes[0], daemonsOf(c, m, out)...)
		hosts.Eventually(t, "only the new authority is left", func() (string, bool) {
			now := authorities(t, c.Nodes[0])
			return fmt.Sprint(now), len(now) == 1 && now[0] != old[0]
		})
		x.goOn(t)
		if i == 0 {
			late.Start(t) // with a token that was made before
			testcluster.RequireLocking(t, c, late.Host, c.Nodes[1].Host)
		}
	}

	lock := c.Path("held")
	holder := out.Host.Start("flock", lock, "sh", "-c", "echo held; exec sleep 1000")
	require.NoError(t, holder.WaitOutput("held\n"))
	_, err := c.Nodes[0].Lockfs("host", "revoke", "out")
	require.NoError(t, err)
	began := time.Now()
	c.Nodes[0].AwaitSession(t, "out", "the session of the revoked host ends", testcluster.NoSession)
	took := time.Since(began)
	t.Logf("the session of a revoked host ended in %v", took.Round(time.Millisecond))
	require.Less(t, took, atOnce)
	m.Host.MustRun(t, "flock", lock, "true")
	x.goOn(t)
	x.end(t)
}
