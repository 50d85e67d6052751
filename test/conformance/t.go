package conformance

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// T is the state of a case. Only its goroutine may use it, which is in the case's directory.
type T struct {
	plan        *Plan
	dir         string
	failure     string
	differences []Difference
	cleanups    []func()
}

var _ require.TestingT = (*T)(nil)

// Errorf makes the case fail.
func (t *T) Errorf(format string, args ...any) { t.failure += fmt.Sprintf(format, args...) + "\n" }

// FailNow ends the case.
func (t *T) FailNow() { runtime.Goexit() }

// Differs reports whether the file system has a difference.
func (t *T) Differs(in Difference) bool {
	if t.plan.Lockfs {
		t.differences = append(t.differences, in)
	}
	return t.plan.Lockfs
}

// cleanup registers a function for the end of the case, as root.
func (t *T) cleanup(do func()) { t.cleanups = append(t.cleanups, do) }

func (t *T) cleanUp() {
	becomeRoot()
	for _, do := range slices.Backward(t.cleanups) {
		do()
	}
}

// ok requires success.
func (t *T) ok(err error, about ...any) { require.NoError(t, err, fmt.Sprintln(about...)) }

// fails requires an error.
func (t *T) fails(want unix.Errno, err error, about ...any) {
	require.Equal(t, symbol(want), symbol(err), "the error: "+fmt.Sprintln(about...))
}

// symbol returns the symbolic name of an error, which is clearer than its text.
func symbol(err error) string {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return unix.ErrnoName(errno)
	}
	return fmt.Sprint(err)
}

func (t *T) equal(want, got any, about ...any) { require.Equal(t, want, got, about...) }

func (t *T) true(holds bool, about ...any) { require.True(t, holds, about...) }

// A user is root or an ordinary user.
type user struct {
	id     int
	groups []int // beside the user's own group, with the same number
}

var (
	alice = user{id: 2001, groups: []int{2100}}
	bob   = user{id: 2002, groups: []int{2100}} // a colleague of alice's
	eve   = user{id: 2003}
)

const colleagues = 2100 // the group

// as runs a function as another user: with that user's ids and groups and without capabilities, for this
// thread. A failure ends the case, so the thread need not become root again.
func (t *T) as(u user, do func()) {
	t.become(u)
	do()
	becomeRoot()
}

func (t *T) become(u user) {
	groups := make([]uint32, 0, len(u.groups)+1)
	for _, group := range u.groups {
		groups = append(groups, uint32(group))
	}
	t.ok(setGroups(append(groups, uint32(u.id))))
	t.ok(setIDs(unix.SYS_SETRESGID, u.id))
	t.ok(setIDs(unix.SYS_SETRESUID, u.id))
}

func becomeRoot() {
	for _, err := range []error{
		setIDs(unix.SYS_SETRESUID, 0), setIDs(unix.SYS_SETRESGID, 0), setGroups([]uint32{0}),
	} {
		if err != nil {
			panic(err) // the thread was root before
		}
	}
}

// path returns the path of a name from the root of the tree.
func (t *T) path(name string) string { return strings.Join([]string{t.dir, name}, "/") }
