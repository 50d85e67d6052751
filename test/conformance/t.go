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

// T is what a case has. It is for the goroutine that it was handed to, which is in the case's directory.
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

// Differs tells whether the file system is one with a difference.
func (t *T) Differs(in Difference) bool {
	if t.plan.Lockfs {
		t.differences = append(t.differences, in)
	}
	return t.plan.Lockfs
}

// cleanup has something done when the case ends, as root.
func (t *T) cleanup(do func()) { t.cleanups = append(t.cleanups, do) }

func (t *T) cleanUp() {
	becomeRoot()
	for _, do := range slices.Backward(t.cleanups) {
		do()
	}
}

// ok is for calls that have to succeed.
func (t *T) ok(err error, about ...any) { require.NoError(t, err, fmt.Sprintln(about...)) }

// fails is for calls that have to fail.
func (t *T) fails(want unix.Errno, err error, about ...any) {
	require.Equal(t, symbol(want), symbol(err), "the error: "+fmt.Sprintln(about...))
}

// symbol is how an error is called in manuals, which tells more than its text.
func symbol(err error) string {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return unix.ErrnoName(errno)
	}
	return fmt.Sprint(err)
}

func (t *T) equal(want, got any, about ...any) { require.Equal(t, want, got, about...) }

func (t *T) true(holds bool, about ...any) { require.True(t, holds, about...) }

// A user is root, or somebody.
type user struct {
	id     int
	groups []int // beyond its own, which has the number of the user
}

var (
	alice = user{id: 2001, groups: []int{2100}}
	bob   = user{id: 2002, groups: []int{2100}} // a colleague of alice's
	eve   = user{id: 2003}
)

const colleagues = 2100 // the group

// as does something as another user: the thread's real and effective ids are that user's, so are its groups,
// and it has no capabilities. What fails ends the case, so that the thread need not become root again then.
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
			panic(err) // the thread could be root before
		}
	}
}

// path is the place of a name of the case's directory in the whole tree.
func (t *T) path(name string) string { return strings.Join([]string{t.dir, name}, "/") }
