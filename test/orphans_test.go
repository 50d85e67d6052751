package test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// An orphan is a lock that nobody has: its creation was committed, and the daemon
// whose call it was got killed in the moment between striking the call off its
// journal and answering the kernel. The other order would take back locks that
// somebody was told to have, so orphans are the lesser evil, and have to be rare.
type orphans struct {
	kills int // that could have left one
	found int
	since map[*job]sight // when the lock that is there was first seen
}

// sight is a job's lock at some time, and how many attempts to take it each worker
// had ended afterwards.
type sight struct {
	inode    string
	attempts []int
}

func newOrphans() *orphans { return &orphans{since: make(map[*job]sight)} }

func (o *orphans) requireFew(t testing.TB) {
	t.Helper()
	require.LessOrEqual(t, o.found, 1+o.kills/10, "orphans after %d kills", o.kills)
}

// remove removes the lock of a job if it is proven to be an orphan; it is called
// again and again. A worker that got the lock when it was already there ends at most
// one attempt until it gives it back, the one in which it got it. So nobody has a
// lock that is still there after each worker ended two. It is known by its inode
// number, which lockfs never uses again.
func (o *orphans) remove(t testing.TB, j *job, from *hosts.Host) {
	t.Helper()
	now, settled := look(t, j, from)
	if !settled {
		return
	}
	first, known := o.since[j]
	if !known || now.inode != first.inode {
		o.since[j] = now
		return
	}
	for i := range now.attempts {
		if now.attempts[i] < first.attempts[i]+2 {
			return
		}
	}
	// The attempts were counted after the lock was seen: it has to be there still.
	if now, _ = look(t, j, from); now.inode != first.inode {
		return
	}
	t.Logf("an orphan of %s: %s", j.client.name, j.describe(from))
	from.MustRun(t, "rm", "-r", j.dir+"/lock")
	delete(o.since, j)
	o.found++
}

// look is not settled if there is no lock, or a worker is just writing its count.
func look(t testing.TB, j *job, from *hosts.Host) (s sight, settled bool) {
	t.Helper()
	inode, err := from.Run("stat", "--format=%i", j.dir+"/lock")
	if err != nil {
		return s, false
	}
	s.inode = strings.TrimSpace(inode)
	for _, name := range j.names {
		attempts := 0
		text, err := os.ReadFile(j.witness.path("attempts." + name))
		if err == nil {
			_, err = fmt.Sscan(string(text), &attempts)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return s, false
		}
		s.attempts = append(s.attempts, attempts)
	}
	return s, true
}

// TestOrphansAreFound has workers wait for a lock that nobody has.
func TestOrphansAreFound(t *testing.T) {
	net := hosts.New(t)
	host := net.Host("a")
	dir := filepath.Join(net.Dir(), "orphaned")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "lock"), 0o755))
	for _, c := range clients {
		w := newWitness(t, filepath.Join(net.Dir(), c.name+".witness"))
		j := startJob(t, c, dir, w, 1, host, host)
		orphans := newOrphans()
		hosts.Eventually(t, "the workers get the lock", func() (string, bool) {
			if orphans.found == 0 { // this file system uses inode numbers again
				orphans.remove(t, j, host)
			}
			return j.describe(host), w.rounds(t, "") >= 2
		})
		w.stop(t)
		j.wait(t)
		require.Equal(t, 1, orphans.found, c.name)
		require.Empty(t, w.verdict(t), c.name)
		require.NoError(t, os.Mkdir(filepath.Join(dir, "lock"), 0o755))
	}
}
