package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// A client is a program in clients/ that takes a lock in its own way. It knows
// nothing of lockfs; clients/worker.sh says how it is called and what it does.
type client struct {
	name    string
	command []string
}

var clients = []client{
	{"bash-noclobber", []string{"bash", "noclobber.sh"}},
	{"dash-noclobber", []string{"dash", "noclobber.sh"}},
	{"python-o-excl", []string{"python3", "exclusive.py"}},
	{"mkdir", []string{"dash", "mkdir.sh"}},
	{"ln", []string{"dash", "link.sh"}},
	{"ln-s", []string{"dash", "symlink.sh"}},
	{"mv-n", []string{"dash", "move.sh"}},
}

// A job is several workers, on several hosts, that all want one lock.
type job struct {
	client  client
	dir     string // where the lock is
	witness *witness
	names   []string // of the workers
	workers []*hosts.Process
}

// startJob starts a worker on each of some hosts, which may be named repeatedly.
func startJob(t testing.TB, c client, dir string, w *witness, rounds int, on ...*hosts.Host) *job {
	t.Helper()
	script, err := filepath.Abs(filepath.Join("clients", c.command[1]))
	require.NoError(t, err)
	j := &job{client: c, dir: dir, witness: w}
	for i, host := range on {
		name := fmt.Sprintf("%s-%d", host.Name(), i)
		j.names = append(j.names, name)
		j.workers = append(j.workers, host.Start(c.command[0], script, dir, w.dir, name, fmt.Sprint(rounds)))
	}
	return j
}

// wait waits until all workers have ended well. It is patient as long as they get on.
func (j *job) wait(t testing.TB) {
	t.Helper()
	for _, worker := range j.workers {
		for rounds, since := -1, time.Now(); ; {
			select {
			case <-worker.Ended():
			case <-time.After(100 * time.Millisecond):
				if now := j.witness.rounds(t, ""); now != rounds {
					rounds, since = now, time.Now()
				}
				if time.Since(since) < hosts.Patience {
					continue
				}
				t.Fatalf("%s: stuck: nobody has had the lock for %v, after %d rounds", j.client.name, hosts.Patience, rounds)
			}
			break
		}
		require.NoError(t, worker.Wait(), "%s: %s", j.client.name, worker.Log())
		require.Contains(t, worker.Stdout(), "finished", "%s", worker)
	}
}

// describe says who has the lock, as far as the witness and the lock tell.
func (j *job) describe(from *hosts.Host) string {
	log, err := os.ReadFile(j.witness.path("log"))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	look, err := from.Run("sh", "-c", `cd "$1" && ls -il --time-style=full-iso; cat lock 2>&1; exit 0`, "sh", j.dir)
	return fmt.Sprintf("the last in the log: %q; in the directory: %s%v", lines[len(lines)-1], look, err)
}

// errors is what the workers on a host complained about. For whom one waits is no complaint.
func (j *job) errors(host *hosts.Host) []string {
	var found []string
	for _, worker := range j.workers {
		if worker.Host() != host {
			continue
		}
		for line := range strings.Lines(worker.Log()) {
			if !strings.HasPrefix(line, "finished") && !strings.HasPrefix(line, "lockfs: waiting for ") {
				found = append(found, strings.TrimSpace(line))
			}
		}
	}
	return found
}
