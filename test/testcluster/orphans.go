package testcluster

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// Orphans are locks that nobody has: their makers were told that they could not be made.
// There must be none. One is removed all the same, so that the others can be found.
type Orphans struct {
	Found int            // so far
	since map[*Job]sight // when the lock that is there was first seen
}

// sight is a job's lock at some time, and how many attempts to take it each worker
// had ended afterwards.
type sight struct {
	lock     string // inode number and time of change
	attempts []int
}

// NewOrphans knows of none.
func NewOrphans() *Orphans { return &Orphans{since: make(map[*Job]sight)} }

// RequireNone requires that none was found.
func (o *Orphans) RequireNone(t testing.TB) {
	t.Helper()
	require.Zero(t, o.Found, "locks that nobody had")
}

// Remove removes the lock of a job if it is proven to be an orphan; it is called
// again and again. A worker that got the lock when it was already there ends at most
// one attempt until it gives it back, the one in which it got it. So nobody has a
// lock that is still there after each worker ended two. It is known by its inode
// number and the time of its last change: the same file linked anew has another.
func (o *Orphans) Remove(t testing.TB, j *Job, from *hosts.Host) {
	t.Helper()
	now, settled := look(t, j, from)
	if !settled {
		return
	}
	first, known := o.since[j]
	if !known || now.lock != first.lock {
		o.since[j] = now
		return
	}
	for i := range now.attempts {
		if now.attempts[i] < first.attempts[i]+2 {
			return
		}
	}
	// The attempts were counted after the lock was seen: it has to be there still.
	if now, _ = look(t, j, from); now.lock != first.lock {
		return
	}
	t.Logf("an orphan of %s: %s", j.Client.Name, j.describe(from))
	from.MustRun(t, "rm", "-r", j.Dir+"/lock")
	delete(o.since, j)
	o.Found++
}

// look is not settled if there is no lock, or a worker is just writing its count.
func look(t testing.TB, j *Job, from *hosts.Host) (s sight, settled bool) {
	t.Helper()
	inode, err := from.Run("stat", "--format=%i %z", j.Dir+"/lock")
	if err != nil {
		return s, false
	}
	s.lock = strings.TrimSpace(inode)
	for _, name := range j.Names {
		attempts := 0
		text, err := os.ReadFile(j.Witness.Path("attempts." + name))
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
