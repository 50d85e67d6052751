package fusefs

import (
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/storepb"
)

// TestLookupsContinueTheirCall looks at what a mount asks for while a process looks at a file: for each name below a
// directory, a state that is as new as the one from which the directory's attributes came, and for these the newest.
func TestLookupsContinueTheirCall(t *testing.T) {
	dir, session := mountFor(t, newCluster())
	path := filepath.Join(dir, "a/b/lock")
	require.NoError(t, exec.Command("mkdir", "-p", filepath.Dir(path)).Run())
	require.NoError(t, exec.Command("touch", path).Run())
	session.mu.Lock()
	index := session.index
	session.mu.Unlock()

	var mu sync.Mutex
	var names []string
	session.intercept(func(_ *storepb.Op, query *storepb.Query) (*storepb.Result, bool, error) {
		mu.Lock()
		defer mu.Unlock()
		if lookup := query.GetLookup(); lookup != nil {
			names = append(names, string(lookup.GetName()))
			require.Equal(t, index, query.GetSince(), "of %q", lookup.GetName())
		} else {
			require.Zero(t, query.GetSince())
		}
		return nil, false, nil
	})
	require.NoError(t, exec.Command("stat", path).Run())
	session.intercept(nil)
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, []string{"a", "b", "lock"}, names)
}

func TestCallsAreContinuedSoonAndByTheSameThread(t *testing.T) {
	const thread, dir, index = 7, 70, 700
	fs := newFileSystem(nil, Options{})
	require.Zero(t, fs.calls.enteredAt(thread, dir))
	fs.calls.entered.Note(thread, entered{dir, index})
	require.EqualValues(t, index, fs.calls.enteredAt(thread, dir))
	require.Zero(t, fs.calls.enteredAt(thread, dir+1), "another directory")
	require.Zero(t, fs.calls.enteredAt(thread+1, dir), "another thread")
	fs.calls.entered.Note(0, entered{dir, index})
	require.Zero(t, fs.calls.enteredAt(0, dir), "a thread that cannot be seen")
	fs.calls.entered.Note(thread, entered{dir, index})
	eventually(t, "it is too long ago", func() bool { return fs.calls.enteredAt(thread, dir) == 0 })
}
