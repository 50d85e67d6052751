//go:build soak

package soakrecord

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// Commands of protocols. One that is killed, or whose mount is, may leave its lock behind until that is stale.
var commands = []testcluster.Client{
	{Name: "tower", Command: []string{"bash", "tower-command.sh"}},
	{Name: "semaphore", Command: []string{"bash", "semaphore-command.sh"}},
	{Name: "swarm", Command: []string{"bash", "swarm-command.sh"}},
	{Name: "beads", Command: []string{"bash", "beads-command.sh"}},
	{Name: "run-pid", Command: []string{"bash", "run.sh"}},
	{Name: "run-tower", Command: []string{"bash", "run.sh"}},
	{Name: "run-beads", Command: []string{"bash", "run.sh"}},
	{Name: "run-swarm", Command: []string{"bash", "run.sh"}},
	{Name: "run-semaphore", Command: []string{"bash", "run.sh"}},
}

// workers of each kind, on different hosts in each piece.
const workers = 2

type programs struct {
	c               *testcluster.Cluster
	dir             string
	plain, commands []*testcluster.Job
}

// startPrograms starts some of each kind that want one lock.
func startPrograms(t testing.TB, c *testcluster.Cluster, on []*hosts.Host, seed uint64) *programs {
	t.Helper()
	p := &programs{c: c, dir: c.Path(fmt.Sprintf("programs%d", seed))}
	start := func(i int, kind testcluster.Client) *testcluster.Job {
		dir := filepath.Join(p.dir, kind.Name)
		on[0].MustRun(t, "mkdir", "-p", "-m", "700", dir)
		witness := testcluster.NewWitness(t, filepath.Join(c.Net.Dir(), fmt.Sprintf("%d-%s.witness", seed, kind.Name)))
		var their []*hosts.Host
		for n := range workers {
			their = append(their, on[(i+int(seed%uint64(len(on)))+n*(1+int(seed%3)))%len(on)])
		}
		return testcluster.StartJob(t, kind, dir, witness, 1, their...)
	}
	for i, kind := range testcluster.Clients {
		p.plain = append(p.plain, start(i, kind))
	}
	for i, kind := range commands {
		p.commands = append(p.commands, start(len(testcluster.Clients)+i, kind))
	}
	return p
}

// finish lets them come to their end, requires that no two had a lock at once, and that those that know nothing of lockfs leave
// nothing, and answers how often the locks were had, and how many were left behind. A call that fails as its host is removed from the
// cluster may have made a lock all the same, which nobody can take back any more.
func (p *programs) finish(t testing.TB, from *hosts.Host, removed []string) (rounds, left int) {
	t.Helper()
	all := slices.Concat(p.plain, p.commands)
	for _, j := range all {
		j.Witness.Stop(t)
	}
	for _, j := range all {
		onRemoved := func(worker string) bool { return slices.Contains(removed, worker[:strings.LastIndex(worker, "-")]) }
		if slices.Contains(p.commands, j) || slices.ContainsFunc(j.Names, onRemoved) {
			left += p.free(t, j, from)
		}
	}
	for _, j := range all {
		j.Wait(t)
		assert.Empty(t, j.Witness.Verdict(t), "%s: what the witness saw", j.Client.Name)
		rounds += j.Witness.Rounds(t, "")
	}
	for _, j := range p.plain {
		assert.Empty(t, from.MustRun(t, "ls", "-A", j.Dir), "%s: left over", j.Client.Name)
	}
	if t.Failed() {
		return rounds, left // what there is of it is kept
	}
	from.MustRun(t, "rm", "-rf", p.dir)
	for _, j := range all {
		from.MustRun(t, "rm", "-rf", j.Witness.Dir)
	}
	return rounds, left
}

// free removes locks that nobody has had for long, as people would, until the workers of a job have ended.
func (p *programs) free(t testing.TB, j *testcluster.Job, from *hosts.Host) (left int) {
	t.Helper()
	const long = 10 * time.Second
	rounds, since := -1, time.Now()
	hosts.Eventually(t, j.Client.Name+" ends", func() (string, bool) {
		if now := j.Witness.Rounds(t, ""); now != rounds {
			rounds, since = now, time.Now()
		}
		if time.Since(since) > long {
			since = time.Now()
			left += p.freeAll(t, j, from)
		}
		for _, worker := range j.Workers {
			select {
			case <-worker.Ended():
			default:
				return worker.Log(), false
			}
		}
		return "", true
	})
	return left + p.freeAll(t, j, from)
}

// freeAll removes what there is in the directory of a job, other than what its programs remove at that moment.
func (p *programs) freeAll(t testing.TB, j *testcluster.Job, from *hosts.Host) (left int) {
	t.Helper()
	for lock := range strings.Lines(from.MustRun(t, "find", j.Dir, "-not", "-type", "d", "-or", "-name", "lock")) {
		from.MustRun(t, "sh", "-c", `"$1" rm --force "$2" || ! { [ -e "$2" ] || [ -L "$2" ]; }`, "sh", p.c.Program, strings.TrimSuffix(lock, "\n"))
		left++
	}
	return left
}
