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

// Orphans are locks without a holder: their creators got an error. None should exist. Remove removes one, so
// that the test can find the others.
type Orphans struct {
	Found int            // so far
	since map[*Job]sight // when a job's present lock was first seen
}

// sight is a job's lock at some time, with the number of attempts that each worker had ended afterwards.
type sight struct {
	lock     string // inode number and time of the last change
	attempts []int
}

// NewOrphans returns an empty count.
func NewOrphans() *Orphans { return &Orphans{since: make(map[*Job]sight)} }

// RequireNone requires that no orphan was found.
func (o *Orphans) RequireNone(t testing.TB) {
	t.Helper()
	require.Zero(t, o.Found, "locks that nobody had")
}

// Remove removes the lock of a job if it is a proven orphan; the test calls it repeatedly. A worker that
// acquired the present lock ends at most one attempt before its release: the acquiring one. So a lock that is
// still present after each worker has ended two attempts has no holder. Inode number and time of the last
// change identify the lock: a file linked anew has another time.
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
	// The attempts were counted after the look at the lock: it must still be the same.
	if now, _ = look(t, j, from); now.lock != first.lock {
		return
	}
	t.Logf("an orphan of %s: %s", j.Client.Name, j.describe(from))
	from.MustRun(t, "rm", "-r", j.Dir+"/lock")
	delete(o.since, j)
	o.Found++
}

// look is not settled without a lock, or while a worker writes its count.
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
