package testcluster

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// A Client is a program in clients/ with its own way to acquire a lock. It knows nothing of lockfs;
// clients/worker.sh describes its arguments.
type Client struct {
	Name    string
	Command []string
}

// Clients are the ways to acquire a lock without knowledge of lockfs.
var Clients = []Client{
	{"bash-noclobber", []string{"bash", "noclobber.sh"}},
	{"dash-noclobber", []string{"dash", "noclobber.sh"}},
	{"python-o-excl", []string{"python3", "exclusive.py"}},
	{"mkdir", []string{"dash", "mkdir.sh"}},
	{"ln", []string{"dash", "link.sh"}},
	{"ln-s", []string{"dash", "symlink.sh"}},
	{"mv-n", []string{"dash", "move.sh"}},
}

// A Job is several workers on several hosts competing for one lock.
type Job struct {
	Client  Client
	Dir     string // where the lock is
	Witness *Witness
	Names   []string // of the workers
	Workers []*hosts.Process
}

// StartJob starts a worker on each of some hosts, possibly repeated.
func StartJob(t testing.TB, c Client, dir string, w *Witness, rounds int, on ...*hosts.Host) *Job {
	t.Helper()
	script := ClientPath(t, c.Command[1])
	j := &Job{Client: c, Dir: dir, Witness: w}
	for i, host := range on {
		name := fmt.Sprintf("%s-%d", host.Name(), i)
		j.Names = append(j.Names, name)
		j.Workers = append(j.Workers, host.Start(c.Command[0], script, dir, w.Dir, name, fmt.Sprint(rounds)))
	}
	return j
}

// Wait waits until all workers have succeeded, as long as they make progress.
func (j *Job) Wait(t testing.TB) {
	t.Helper()
	for _, worker := range j.Workers {
		for rounds, since := -1, time.Now(); ; {
			select {
			case <-worker.Ended():
			case <-time.After(100 * time.Millisecond):
				if now := j.Witness.Rounds(t, ""); now != rounds {
					rounds, since = now, time.Now()
				}
				if time.Since(since) < hosts.Patience {
					continue
				}
				t.Fatalf("%s: stuck: nobody has had the lock for %v, after %d rounds", j.Client.Name, hosts.Patience, rounds)
			}
			break
		}
		require.NoError(t, worker.Wait(), "%s: %s", j.Client.Name, worker.Log())
		require.Contains(t, worker.Stdout(), "finished", "%s", worker)
	}
}

// describe describes the lock's holder, from the witness and the lock.
func (j *Job) describe(from *hosts.Host) string {
	log, err := os.ReadFile(j.Witness.Path("log"))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	look, err := from.Run("sh", "-c", `cd "$1" && ls -il --time-style=full-iso; cat lock 2>&1; exit 0`, "sh", j.Dir)
	return fmt.Sprintf("the last in the log: %q; in the directory: %s%v", lines[len(lines)-1], look, err)
}

// Errors returns the workers' errors on a host, without their messages about waiting.
func (j *Job) Errors(host *hosts.Host) []string {
	var found []string
	for _, worker := range j.Workers {
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
