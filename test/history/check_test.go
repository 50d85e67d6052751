package history

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// made is one call of a history made by hand: client, interval, what it does and what came of it.
type made struct {
	client     int
	start, end int64 // end 0: it does not return
	kind       Kind
	name, to   string
	opened     int    // number of the call that opened the descriptor
	on         uint64 // inode of the descriptor
	data       string
	errno      syscall.Errno
	got        Got
}

func (m made) call(seq int) *Call {
	return &Call{
		Record: Record{
			Client: m.client, Seq: seq, Host: string(rune('a' + m.client)), Dir: "d", Start: m.start, End: m.end, Errno: m.errno,
		},
		Kind: m.kind, Name: m.name, To: m.to, Opened: m.opened, Ino: m.on, Data: m.data, Got: m.got,
	}
}

// Short forms of what histories are made of.
func seen(inos ...any) Got {
	got := Got{Entries: make(map[string]uint64)}
	for i := 0; i < len(inos); i += 2 {
		got.Entries[inos[i].(string)] = uint64(inos[i+1].(int))
	}
	return got
}

func file(ino uint64, nlink uint32, size int64) Got { return Got{Ino: ino, Nlink: nlink, Size: size} }

const (
	exists   = syscall.EEXIST
	none     = syscall.ENOENT
	timedOut = syscall.ETIMEDOUT
	dead     = syscall.ECONNABORTED
	stale    = syscall.ESTALE
)

// settled is when the histories below are settled.
const settled = 1000

var histories = []struct {
	name     string
	possible bool
	calls    []made
}{
	{"nothing", true, nil},
	{"one after the other", true, []made{
		{client: 0, start: 1, end: 2, kind: Create, name: "x", got: Got{Ino: 5}},
		{client: 1, start: 3, end: 4, kind: Create, name: "x", errno: exists},
		{client: 1, start: 5, end: 6, kind: Stat, name: "x", got: file(5, 1, 0)},
		{client: 0, start: 7, end: 8, kind: Unlink, name: "x"},
		{client: 1, start: 9, end: 10, kind: Create, name: "x", got: Got{Ino: 6}},
		{client: 1, start: 11, end: 12, kind: List, got: seen("x", 6)},
	}},
	{"two have it", false, []made{
		{client: 0, start: 1, end: 4, kind: Create, name: "x", got: Got{Ino: 5}},
		{client: 1, start: 2, end: 3, kind: Create, name: "x", got: Got{Ino: 6}},
	}},
	{"two make a directory", false, []made{
		{client: 0, start: 1, end: 4, kind: Mkdir, name: "x"},
		{client: 1, start: 2, end: 3, kind: Mkdir, name: "x"},
	}},
	{"both make it, with a removal under way", true, []made{
		{client: 0, start: 1, end: 4, kind: Create, name: "x", got: Got{Ino: 5}},
		{client: 1, start: 2, end: 6, kind: Create, name: "x", got: Got{Ino: 6}},
		{client: 2, start: 3, end: 5, kind: Unlink, name: "x"},
	}},
	{"nobody has it", false, []made{
		{client: 0, start: 1, end: 4, kind: Create, name: "x", errno: exists},
		{client: 1, start: 2, end: 3, kind: Create, name: "x", errno: exists},
	}},
	{"an inode number twice", false, []made{
		{client: 0, start: 1, end: 2, kind: Create, name: "x", got: Got{Ino: 5}},
		{client: 0, start: 3, end: 4, kind: Unlink, name: "x"},
		{client: 0, start: 5, end: 6, kind: Create, name: "x", got: Got{Ino: 5}},
	}},
	{"a stale lookup", false, []made{
		{client: 0, start: 1, end: 2, kind: Create, name: "x", got: Got{Ino: 5}},
		{client: 1, start: 3, end: 4, kind: Stat, name: "x", errno: none},
	}},
	{"a lookup while it is made", true, []made{
		{client: 0, start: 1, end: 4, kind: Create, name: "x", got: Got{Ino: 5}},
		{client: 1, start: 2, end: 3, kind: Stat, name: "x", errno: none},
	}},
	{"seen, and then not yet", false, []made{
		{client: 0, start: 1, end: 10, kind: Create, name: "x", got: Got{Ino: 5}},
		{client: 1, start: 2, end: 3, kind: Stat, name: "x", got: file(5, 1, 0)},
		{client: 2, start: 4, end: 5, kind: Stat, name: "x", errno: none},
	}},
	{"appends from two hosts", true, []made{
		{client: 0, start: 1, end: 2, kind: Open, name: "x", got: Got{Ino: 5}},
		{client: 1, start: 1, end: 3, kind: Open, name: "x", got: Got{Ino: 5}},
		{client: 0, start: 4, end: 8, kind: Append, on: 5, data: "ab"},
		{client: 1, start: 4, end: 8, kind: Append, on: 5, data: "cd"},
		{client: 0, start: 9, end: 10, kind: Read, on: 5, got: Got{Content: "cdab"}},
		{client: 0, start: 11, end: 12, kind: Write, on: 5, data: "xyz"},
		{client: 1, start: 13, end: 14, kind: Read, on: 5, got: Got{Content: "xyzb"}},
		{client: 1, start: 15, end: 16, kind: Truncate, on: 5},
		{client: 0, start: 17, end: 18, kind: Fstat, on: 5, got: file(5, 1, 0)},
	}},
	{"an append that was done twice", false, []made{
		{client: 0, start: 1, end: 2, kind: Create, name: "x", got: Got{Ino: 5}},
		{client: 0, start: 3, end: 4, kind: Append, on: 5, data: "ab"},
		{client: 0, start: 5, end: 6, kind: Read, on: 5, got: Got{Content: "abab"}},
	}},
	{"an append that was lost", false, []made{
		{client: 0, start: 1, end: 2, kind: Create, name: "x", got: Got{Ino: 5}},
		{client: 0, start: 3, end: 8, kind: Append, on: 5, data: "ab"},
		{client: 1, start: 3, end: 8, kind: Append, on: 5, data: "cd"},
		{client: 0, start: 9, end: 10, kind: Read, on: 5, got: Got{Content: "cd"}},
	}},
	{"a lock by link", true, []made{
		{client: 0, start: 1, end: 2, kind: Create, name: "t", got: Got{Ino: 5}},
		{client: 0, start: 3, end: 4, kind: Link, name: "t", to: "x"},
		{client: 1, start: 5, end: 6, kind: Stat, name: "x", got: file(5, 2, 0)},
		{client: 0, start: 7, end: 8, kind: Unlink, name: "t"},
		{client: 1, start: 9, end: 10, kind: Stat, name: "x", got: file(5, 1, 0)},
	}},
	{"a second name that is not counted", false, []made{
		{client: 0, start: 1, end: 2, kind: Create, name: "t", got: Got{Ino: 5}},
		{client: 0, start: 3, end: 4, kind: Link, name: "t", to: "x"},
		{client: 1, start: 5, end: 6, kind: Stat, name: "t", got: file(5, 1, 0)},
	}},
	{"a stat across a replacement", true, []made{
		{client: 0, start: 1, end: 2, kind: Create, name: "x", got: Got{Ino: 5}},
		{client: 0, start: 3, end: 4, kind: Create, name: "t", got: Got{Ino: 6}},
		{client: 0, start: 5, end: 8, kind: Rename, name: "t", to: "x"},
		{client: 1, start: 6, end: 9, kind: Stat, name: "x", got: file(5, 0, 0)},
	}},
	{"a rename that was half done", false, []made{
		{client: 0, start: 1, end: 2, kind: Create, name: "t", got: Got{Ino: 5}},
		{client: 0, start: 3, end: 8, kind: Rename, name: "t", to: "x"},
		{client: 1, start: 4, end: 5, kind: List, got: seen("t", 5, "x", 5)},
	}},
	{"a rename that replaced what it may not", false, []made{
		{client: 0, start: 1, end: 2, kind: Create, name: "x", got: Got{Ino: 5}},
		{client: 0, start: 3, end: 4, kind: Create, name: "t", got: Got{Ino: 6}},
		{client: 0, start: 5, end: 6, kind: NoReplace, name: "t", to: "x"},
	}},
	{"a rename that somebody else did in its midst", true, []made{
		{client: 0, start: 1, end: 2, kind: Create, name: "t", got: Got{Ino: 5}},
		{client: 0, start: 3, end: 6, kind: Rename, name: "t", to: "x"},
		{client: 1, start: 4, end: 5, kind: Rename, name: "t", to: "x"},
	}},
	{"a rename that somebody else did before", false, []made{
		{client: 0, start: 1, end: 2, kind: Create, name: "t", got: Got{Ino: 5}},
		{client: 0, start: 3, end: 4, kind: Rename, name: "t", to: "x"},
		{client: 1, start: 5, end: 6, kind: Rename, name: "t", to: "x"},
	}},
	{"a directory in the way", true, []made{
		{client: 0, start: 1, end: 2, kind: Mkdir, name: "x"},
		{client: 0, start: 3, end: 4, kind: Create, name: "t", got: Got{Ino: 6}},
		{client: 0, start: 5, end: 6, kind: Rename, name: "t", to: "x", errno: syscall.EISDIR},
		{client: 0, start: 5, end: 6, kind: Open, name: "x", errno: syscall.EISDIR},
		{client: 0, start: 7, end: 8, kind: Rename, name: "x", to: "t", errno: syscall.ENOTDIR},
		{client: 0, start: 9, end: 10, kind: Rmdir, name: "x"},
		{client: 0, start: 11, end: 12, kind: Rmdir, name: "t", errno: syscall.ENOTDIR},
	}},
	{"a directory that nobody made", false, []made{
		{client: 0, start: 1, end: 2, kind: Create, name: "x", got: Got{Ino: 5}},
		{client: 0, start: 3, end: 4, kind: Unlink, name: "x", errno: syscall.EISDIR},
	}},
	{"a holder that learns of its loss", true, []made{
		{client: 0, start: 1, end: 2, kind: Create, name: "x", got: Got{Ino: 5}},
		{client: 1, start: 3, end: 4, kind: Unlink, name: "x"},
		{client: 0, start: 5, end: 6, kind: Write, on: 5, data: "ab", errno: stale},
		{client: 0, start: 7, end: 8, kind: Fstat, on: 5, got: file(5, 0, 0)},
	}},
	{"data that another host has removed, and that stays open", true, []made{
		{client: 0, start: 1, end: 2, kind: Create, name: "x", got: Got{Ino: 5}},
		{client: 1, start: 3, end: 4, kind: Unlink, name: "x"},
		{client: 0, start: 5, end: 6, kind: Write, on: 5, data: "ab"},
	}},
	{"a loss that was none", false, []made{
		{client: 0, start: 1, end: 2, kind: Create, name: "x", got: Got{Ino: 5}},
		{client: 0, start: 5, end: 6, kind: Write, on: 5, data: "ab", errno: stale},
	}},
	{"a file that is used on after its removal here", true, []made{
		{client: 0, start: 1, end: 2, kind: Create, name: "x", got: Got{Ino: 5}},
		{client: 0, start: 3, end: 4, kind: Unlink, name: "x"},
		{client: 0, start: 5, end: 6, kind: Write, on: 5, data: "ab"},
		{client: 0, start: 7, end: 8, kind: Read, on: 5, got: Got{Content: "ab"}},
	}},

	// Unknown outcomes.
	{"a removal that came late", true, []made{
		{client: 0, start: 1, end: 2, kind: Create, name: "x", got: Got{Ino: 5}},
		{client: 1, start: 3, end: 4, kind: Unlink, name: "x", errno: timedOut},
		{client: 0, start: 5, end: 6, kind: Stat, name: "x", got: file(5, 1, 0)},
		{client: 0, start: 2000, end: 2001, kind: Stat, name: "x", errno: none},
	}},
	{"a removal that was undone", false, []made{
		{client: 0, start: 1, end: 2, kind: Create, name: "x", got: Got{Ino: 5}},
		{client: 1, start: 3, end: 4, kind: Unlink, name: "x", errno: timedOut},
		{client: 0, start: 5, end: 6, kind: Stat, name: "x", errno: none},
		{client: 0, start: 7, end: 8, kind: Stat, name: "x", got: file(5, 1, 0)},
	}},
	{"an append that may have been done, twice", false, []made{
		{client: 0, start: 1, end: 2, kind: Create, name: "x", got: Got{Ino: 5}},
		{client: 0, start: 3, end: 4, kind: Append, on: 5, data: "ab", errno: timedOut},
		{client: 1, start: 5, end: 6, kind: Read, on: 5, got: Got{Content: "abab"}},
	}},
	{"a creation that nobody was told of, for a while", true, []made{
		{client: 0, start: 1, end: 2, kind: Create, name: "x", errno: timedOut},
		{client: 1, start: 3, end: 4, kind: Create, name: "x", errno: exists},
		{client: 1, start: 5, end: 6, kind: Stat, name: "x", got: file(7, 1, 0)},
		{client: 1, start: 7, end: 8, kind: Create, name: "x", got: Got{Ino: 8}},
		{client: 1, start: 2000, end: 2001, kind: List, got: seen("x", 8)},
	}},
	{"a creation that nobody was told of, for good", false, []made{
		{client: 0, start: 1, end: 2, kind: Create, name: "x", errno: timedOut},
		{client: 1, start: 2000, end: 2001, kind: List, got: seen("x", 7)},
	}},
	{"a creation that was taken back and came again", false, []made{
		{client: 0, start: 1, end: 2, kind: Mkdir, name: "x", errno: timedOut},
		{client: 1, start: 3, end: 4, kind: List, got: seen("x", 7)},
		{client: 1, start: 5, end: 6, kind: List, got: seen()},
		{client: 1, start: 7, end: 8, kind: List, got: seen("x", 7)},
	}},
	{"a creation that changed its inode", false, []made{
		{client: 0, start: 1, end: 2, kind: Create, name: "x", errno: timedOut},
		{client: 1, start: 3, end: 4, kind: List, got: seen("x", 7)},
		{client: 1, start: 5, end: 6, kind: List, got: seen("x", 8)},
	}},
	{"a creation that died with its daemon and stayed", false, []made{
		{client: 0, start: 1, end: 2, kind: Create, name: "x", errno: dead},
		{client: 1, start: 2000, end: 2001, kind: List, got: seen("x", 7)},
	}},
	{"a creation that died with its caller and stayed", true, []made{
		{client: 0, start: 1, kind: Create, name: "x"},
		{client: 1, start: 2000, end: 2001, kind: List, got: seen("x", 7)},
	}},
	{"a creation that did not return and was taken back", true, []made{
		{client: 0, start: 1, kind: Create, name: "x"},
		{client: 1, start: 3, end: 4, kind: List, got: seen("x", 7)},
		{client: 1, start: 2000, end: 2001, kind: List, got: seen()},
	}},
	{"a creation that somebody moved away before it was taken back", true, []made{
		{client: 0, start: 1, end: 2, kind: Create, name: "x", errno: timedOut},
		{client: 1, start: 3, end: 4, kind: Rename, name: "x", to: "y"},
		{client: 1, start: 2000, end: 2001, kind: List, got: seen("y", 7)},
	}},
	{"a move that went back", true, []made{
		{client: 0, start: 1, end: 2, kind: Create, name: "t", got: Got{Ino: 5}},
		{client: 0, start: 3, end: 4, kind: NoReplace, name: "t", to: "x", errno: timedOut},
		{client: 1, start: 5, end: 6, kind: List, got: seen("x", 5)},
		{client: 1, start: 2000, end: 2001, kind: List, got: seen("t", 5)},
	}},
	{"a move that did not go back", false, []made{
		{client: 0, start: 1, end: 2, kind: Create, name: "t", got: Got{Ino: 5}},
		{client: 0, start: 3, end: 4, kind: NoReplace, name: "t", to: "x", errno: timedOut},
		{client: 1, start: 2000, end: 2001, kind: List, got: seen("x", 5)},
	}},
	{"a link that went away", true, []made{
		{client: 0, start: 1, end: 2, kind: Create, name: "t", got: Got{Ino: 5}},
		{client: 0, start: 3, end: 4, kind: Link, name: "t", to: "x", errno: timedOut},
		{client: 1, start: 5, end: 6, kind: Stat, name: "t", got: file(5, 2, 0)},
		{client: 1, start: 2000, end: 2001, kind: Stat, name: "t", got: file(5, 1, 0)},
	}},
	{"an open that created and stayed", true, []made{
		{client: 0, start: 1, end: 2, kind: Open, name: "x", errno: timedOut},
		{client: 1, start: 2000, end: 2001, kind: List, got: seen("x", 7)},
	}},
	{"a creation that somebody changed", true, changedThen("ab", seen("x", 7))},
	{"a creation that was taken back though somebody had changed it", false, changedThen("ab", seen())},
	{"a creation that was taken back though somebody had linked it", false, []made{
		{client: 0, start: 1, end: 2, kind: Create, name: "x", errno: timedOut},
		{client: 1, start: 3, end: 4, kind: Link, name: "x", to: "y"},
		{client: 1, start: 5, end: 6, kind: Unlink, name: "y"},
		{client: 1, start: 2000, end: 2001, kind: List, got: seen()},
	}},
	{"an open that created and was written to", true, []made{
		{client: 0, start: 1, end: 2, kind: Open, name: "x", errno: timedOut},
		{client: 1, start: 3, end: 4, kind: Open, name: "x", got: Got{Ino: 7}},
		{client: 1, start: 5, end: 6, kind: Append, on: 7, data: "ab"},
		{client: 1, start: 2000, end: 2001, kind: List, got: seen("x", 7)},
	}},
	{"an error that says nothing", true, []made{
		{client: 0, start: 1, end: 2, kind: Look, name: "x", errno: stale},
		{client: 0, start: 3, end: 4, kind: Stat, name: "x", errno: dead},
		{client: 0, start: 5, kind: List},
	}},
	{"an error that nobody should get", false, []made{
		{client: 0, start: 1, end: 2, kind: Create, name: "x", errno: syscall.EINTR},
	}},
}

// changedThen has somebody write to a creation of unknown outcome before all is settled, and look after that.
func changedThen(data string, then Got) []made {
	return []made{
		{client: 0, start: 1, end: 2, kind: Create, name: "x", errno: timedOut},
		{client: 1, start: 3, end: 4, kind: Look, name: "x", got: Got{Ino: 7}},
		{client: 1, start: 5, end: 6, kind: Append, on: 7, data: data},
		{client: 1, start: 2000, end: 2001, kind: List, got: then},
	}
}

func TestHistories(t *testing.T) {
	for _, h := range histories {
		t.Run(h.name, func(t *testing.T) {
			history := History{Settled: settled}
			for i, m := range h.calls {
				history.Calls = append(history.Calls, m.call(i+1))
			}
			err := history.Check(time.Minute)
			if h.possible {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			require.NotErrorIs(t, err, ErrUndecided)
		})
	}
}

// TestSessionsLast takes the excuse away that a mount lost its session.
func TestSessionsLast(t *testing.T) {
	calls := []*Call{
		made{client: 0, start: 1, end: 2, kind: Create, name: "x", got: Got{Ino: 5}}.call(1),
		made{client: 0, start: 3, end: 4, kind: Unlink, name: "x"}.call(2),
		made{client: 0, start: 5, end: 6, kind: Write, on: 5, data: "ab", errno: stale}.call(3),
	}
	require.NoError(t, (&History{Calls: calls}).Check(time.Minute))
	require.ErrorIs(t, (&History{Calls: calls, SessionsLast: true}).Check(time.Minute), ErrImpossible)
}

func TestRecorder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calls")
	recorder, err := NewRecorder(path)
	require.NoError(t, err)
	done := made{client: 1, kind: Create, name: "x"}.call(1)
	require.NoError(t, recorder.Do(done, func() error { done.Got.Ino = 5; return nil }))
	refused := made{client: 1, kind: Create, name: "x"}.call(2)
	require.NoError(t, recorder.Do(refused, func() error { return syscall.EEXIST }))
	begun := made{client: 1, kind: Create, name: "x"}.call(3)
	require.NoError(t, recorder.write(begun))
	_, err = recorder.file.WriteString(`{"client":1,"seq":4`)
	require.NoError(t, err)

	calls, err := ReadCalls(path)
	require.NoError(t, err)
	require.Equal(t, []*Call{done, refused, begun}, calls)
	assert.LessOrEqual(t, done.Start, done.End)
	assert.Less(t, done.End, refused.End)
	assert.True(t, begun.Unknown())
	assert.False(t, refused.Unknown())
}
