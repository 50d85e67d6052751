package history

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const busy = syscall.EBUSY

// What others (client 0) do in the histories below, and what the one does (client 1) who removes something
// in the end.
var (
	makes    = []made{{kind: Create, name: "x", got: Got{Ino: 5}}, {kind: Write, name: "x", opened: 1, on: 5, data: "ab"}}
	leaves   = makes[:1] // empty
	replaces = []made{{kind: Unlink, name: "x"}, {kind: Create, name: "x", got: Got{Ino: 6}}}
	renamed  = []made{{kind: Create, name: "t", got: Got{Ino: 6}}, {kind: Rename, name: "t", to: "x"}}
	writes   = []made{{kind: Write, name: "x", on: 5, data: "cd"}}
	clears   = []made{{kind: Truncate, name: "x", on: 5}}

	opens  = []made{{client: 1, kind: Look, name: "x", got: Got{Ino: 5}}}
	reads  = []made{{client: 1, kind: Read, name: "x", on: 5, got: Got{Content: "ab"}}}
	misses = []made{{client: 1, kind: Read, name: "x", on: 5}}
	has    = []made{{client: 1, kind: Create, name: "t", got: Got{Ino: 9}}}

	unlinks   = made{client: 1, kind: Unlink, name: "x"}
	takesAway = made{client: 1, kind: Rename, name: "x", to: "y"}
	takesOver = made{client: 1, kind: Rename, name: "t", to: "x"}
	truncates = made{client: 1, kind: Truncate, name: "x", on: 5}
)

var removals = []struct {
	name   string
	before [][]made // one after the other; a descriptor of client 1 is the one that it opened last
	last   made
	may    []syscall.Errno // how that can come out; nothing else is possible
}{
	{"of what nobody looked at", [][]made{makes, replaces}, unlinks, []syscall.Errno{0}},
	{"of what was opened only", [][]made{makes, opens, replaces}, unlinks, []syscall.Errno{0}},
	{"of what another one looked at", [][]made{makes, {{client: 2, kind: Look, name: "x", got: Got{Ino: 5}}}, replaces}, unlinks, []syscall.Errno{0}},
	{"of the same", [][]made{makes, opens, reads}, unlinks, []syscall.Errno{0}},
	{"of another", [][]made{makes, opens, reads, replaces}, unlinks, []syscall.Errno{none}},
	{"of another that is moved away", [][]made{makes, opens, reads, replaces}, takesAway, []syscall.Errno{none}},
	{"of another that is replaced", [][]made{makes, opens, reads, replaces, has}, takesOver, []syscall.Errno{stale}},
	{"of one that was replaced", [][]made{makes, opens, reads, renamed}, unlinks, []syscall.Errno{0}},
	{"of another that was looked at too", [][]made{
		makes, opens, reads, replaces,
		{{client: 1, kind: Look, name: "x", got: Got{Ino: 6}}}, {{client: 1, kind: Read, name: "x", on: 6}},
	}, unlinks, []syscall.Errno{0, busy}},
	{"of another than is open", [][]made{makes, opens, replaces, reads}, unlinks, []syscall.Errno{none}},
	{"of another than was made", [][]made{{{client: 1, kind: Mkdir, name: "x"}, {kind: Rmdir, name: "x"}, {kind: Mkdir, name: "x"}}},
		made{client: 1, kind: Rmdir, name: "x"}, []syscall.Errno{none}},
	{"of another than was linked", [][]made{has, {{client: 1, kind: Link, name: "t", to: "x"}}, replaces}, unlinks, []syscall.Errno{none}},
	{"of another than was moved there", [][]made{has, {{client: 1, kind: Rename, name: "t", to: "x"}}, replaces}, unlinks, []syscall.Errno{none}},
	{"of another than was written to", [][]made{
		makes, opens, {{client: 1, kind: Append, name: "x", on: 5, data: "cd"}}, replaces,
	}, unlinks, []syscall.Errno{none}},
	{"of what a mount saw that is gone", [][]made{
		makes, opens, reads, replaces, {{client: 1, kind: Stat, name: "x", errno: dead}},
	}, unlinks, []syscall.Errno{0}},
	{"of what was empty and is not", [][]made{leaves, opens, misses, writes}, unlinks, []syscall.Errno{busy}},
	{"of what was empty and was replaced by something", [][]made{
		leaves, opens, misses, renamed, {{kind: Write, name: "x", on: 6, data: "cd"}},
	}, unlinks, []syscall.Errno{busy}},
	{"of what was empty and still is", [][]made{leaves, opens, misses}, unlinks, []syscall.Errno{0, busy}},
	{"of what was empty and is the own", [][]made{
		{{client: 1, kind: Create, name: "x", got: Got{Ino: 5}}}, misses, writes,
	}, unlinks, []syscall.Errno{0}},
	{"of what was emptied", [][]made{makes, opens, reads, clears}, unlinks, []syscall.Errno{0}},
	{"of what the own process emptied before it was empty", [][]made{makes, opens, {truncates}, misses, writes}, unlinks, []syscall.Errno{0}},
	{"of what was empty and is the own, after all names were listed", [][]made{
		{{client: 1, kind: Create, name: "x", got: Got{Ino: 5}}, {client: 1, kind: List, got: seen("x", 5)}}, misses, writes,
	}, unlinks, []syscall.Errno{0}},
	{"of another, after all names were listed", [][]made{
		makes, opens, reads, replaces, {{client: 1, kind: List, got: seen("x", 6)}},
	}, unlinks, []syscall.Errno{0}},
	{"of another than was emptied", [][]made{makes, opens, {truncates}, replaces}, unlinks, []syscall.Errno{none}},
	{"of the content of what was empty and is not", [][]made{
		leaves, {{client: 1, kind: Open, name: "x", got: Got{Ino: 5}}}, misses, writes,
	}, truncates, []syscall.Errno{busy}},
	{"of the content of the same file under the name of another lock", [][]made{
		makes, {{client: 1, kind: Open, name: "x", got: Got{Ino: 5}}}, reads,
		{{kind: Rename, name: "x", to: "y"}, {kind: Rename, name: "y", to: "x"}},
	}, truncates, []syscall.Errno{stale}},
	{"of the content of a file that is no lock any more", [][]made{
		makes, {{client: 1, kind: Open, name: "x", got: Got{Ino: 5}}}, reads, {{kind: Rename, name: "x", to: "y"}}, replaces[1:],
	}, truncates, []syscall.Errno{0}},
	{"of what an open may have found only when it wanted to make it", [][]made{
		leaves,
		{{kind: Unlink, name: "x"}, {kind: Create, name: "z", got: Got{Ino: 8}}, {kind: Link, name: "z", to: "x"}},
		{{client: 1, start: 6, end: 10, kind: Open, name: "x", got: Got{Ino: 8}}, {kind: Unlink, name: "x"}, {kind: Create, name: "x", got: Got{Ino: 7}}},
		{{client: 1, kind: Read, name: "x", on: 8}},
	}, unlinks, []syscall.Errno{0, none}},
}

// TestRemovals tries each way in which a removal could come out.
func TestRemovals(t *testing.T) {
	for _, r := range removals {
		t.Run(r.name, func(t *testing.T) {
			for _, errno := range []syscall.Errno{0, none, stale, busy} {
				last := r.last
				last.errno = errno
				err := (&History{Calls: inTurn(append(slices.Concat(r.before...), last))}).Check(time.Minute)
				if slices.Contains(r.may, errno) {
					require.NoError(t, err)
				} else {
					require.Error(t, err, "%v", errno)
					require.NotErrorIs(t, err, ErrUndecided)
				}
			}
		})
	}
}

// inTurn gives times to calls that have none. What client 1 has open is what it opened last.
func inTurn(all []made) (calls []*Call) {
	opened := 0
	for i, m := range all {
		if m.start == 0 {
			m.start, m.end = int64(2*i+2), int64(2*i+3)
		}
		switch {
		case m.client != 1:
		case m.kind == Create || m.kind == Open || m.kind == Look:
			opened = i + 1
		case m.on != 0:
			m.opened = opened
		}
		calls = append(calls, m.call(i+1))
	}
	return calls
}

// TestRemovalThatCannotComeLate has a removal of unknown outcome, which is held to what was seen too.
func TestRemovalThatCannotComeLate(t *testing.T) {
	late := unlinks
	late.errno = timedOut
	gone := made{kind: Stat, name: "x", errno: none}
	require.NoError(t, (&History{Calls: inTurn(slices.Concat(makes, opens, reads, []made{late, gone}))}).Check(time.Minute))
	err := (&History{Calls: inTurn(slices.Concat(makes, opens, reads, replaces, []made{late, gone}))}).Check(time.Minute)
	require.ErrorIs(t, err, ErrImpossible)
}

// TestForgetful is for file systems that remember nothing.
func TestForgetful(t *testing.T) {
	calls := inTurn(slices.Concat(makes, opens, reads, replaces, []made{unlinks}))
	require.ErrorIs(t, (&History{Calls: calls}).Check(time.Minute), ErrImpossible)
	require.NoError(t, (&History{Calls: calls, Forgetful: true}).Check(time.Minute))
}
