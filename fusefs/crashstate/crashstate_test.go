package crashstate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/storepb"
)

func read(t *testing.T, e *Estate) *Left {
	t.Helper()
	data, err := Load(e.File())
	require.NoError(t, err)
	require.True(t, Is(data))
	left, err := Read(data)
	require.NoError(t, err)
	return left
}

func TestWhatIsLeft(t *testing.T) {
	e, err := New([]byte("a mount"), nil)
	require.NoError(t, err)
	require.Equal(t, &Left{Mount: []byte("a mount"), Seen: []byte{}}, read(t, e))

	session := e.Opened(7, 70, []byte("seven"))
	e.Opened(8, 80, nil)
	session.Store(5)
	flock, record := Owner{70, storepb.LockKind_FLOCK, 7}, Owner{80, storepb.LockKind_RECORD, 1 << 63}
	e.Locks(flock, 7)
	e.Locks(record, 7)
	e.Locks(record, 8)
	left := read(t, e)
	require.Equal(t, []File{{7, 70, 5, []byte("seven")}, {8, 80, 0, []byte{}}}, left.Files)
	require.Equal(t, []Lock{{flock, 7}, {record, 8}}, left.Locks)

	e.Named(7, []byte("otherwise"))
	require.Equal(t, []File{{7, 70, 5, []byte("otherwise")}, {8, 80, 0, []byte{}}}, read(t, e).Files)

	e.Locks(flock, 0)
	e.Closed(7)
	e.Named(7, []byte("closed"))
	e.LocksNothing(record)
	left = read(t, e)
	require.Equal(t, []File{{8, 80, 0, []byte{}}}, left.Files)
	require.Equal(t, []Lock{{flock, 0}}, left.Locks)

	require.Zero(t, e.Opened(9, 90, []byte("nine")).Load(), "in the place of the first, which had a session")
	require.Equal(t, []File{{9, 90, 0, []byte("nine")}, {8, 80, 0, []byte{}}}, read(t, e).Files)
	require.False(t, read(t, e).Incomplete)
}

func TestWhatWasSeen(t *testing.T) {
	e, err := New(nil, nil)
	require.NoError(t, err)
	e.Replace([]byte("first "))
	require.True(t, e.Append([]byte("and more")))
	require.Equal(t, "first and more", string(read(t, e).Seen))
	for n := range 3 {
		e.Replace([]byte{byte(n)})
		require.Equal(t, []byte{byte(n)}, read(t, e).Seen)
	}
	require.False(t, e.Append(make([]byte, shortText)), "it is to be replaced")
	require.Len(t, read(t, e).Seen, 1+shortText)
}

func TestTooMuchIsOpen(t *testing.T) {
	e, err := New(nil, nil)
	require.NoError(t, err)
	for handle := range uint64(room) {
		require.NotNil(t, e.Opened(handle+1, 1, nil))
	}
	require.Nil(t, e.Opened(room+1, 1, nil))
	e.Closed(1)
	require.True(t, read(t, e).Incomplete, "one is open that was not noted")
	goesOn, err := MayGoOn(e.File(), time.Hour, time.Minute)
	require.NoError(t, err)
	require.False(t, goesOn)
}

// TestNothingIsKept where there is no crash state.
func TestNothingIsKept(t *testing.T) {
	var none *Estate
	require.Nil(t, none.Opened(1, 1, nil))
	none.Closed(1)
	none.Locks(Owner{}, 1)
	none.LocksNothing(Owner{})
}

// TestCrashesAreCounted over the processes of a mount.
func TestCrashesAreCounted(t *testing.T) {
	now := time.Hour
	e, err := New(nil, nil)
	require.NoError(t, err)
	crash := func(after time.Duration) bool {
		t.Helper()
		now += after
		goesOn, err := MayGoOn(e.File(), now, time.Minute)
		require.NoError(t, err)
		e, err = New(nil, read(t, e).Crashes)
		require.NoError(t, err)
		return goesOn
	}
	for range mostCrashes {
		require.True(t, crash(time.Second))
	}
	require.False(t, crash(time.Second))
	require.True(t, crash(2*time.Minute))
	for range 2 * mostCrashes {
		require.True(t, crash(7*time.Second))
	}
}
