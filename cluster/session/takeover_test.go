package session_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/session"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

func TestClientTakesOverAndSettles(t *testing.T) {
	node := startServers(t, 1)[0]
	file := filepath.Join(t.TempDir(), "mount.session")
	dead := openClient(t, node, file)
	require.Equal(t, storepb.Code_OK, create(t, dead, "told"))
	id := dead.Session()

	// The process is killed after the cluster has done it and before the result was passed on.
	dead.BeginUntold(t, createOp("untold"))
	dead.Die(t)

	heir := openClient(t, node, file)
	require.Equal(t, id, heir.Session())
	require.Equal(t, storepb.Code_OK, lookup(t, heir, "told"))
	require.Equal(t, storepb.Code_NOT_FOUND, lookup(t, heir, "untold"))
	require.Equal(t, storepb.Code_OK, create(t, heir, "untold"))
}

// TestClientBesideOneThatLingers has a second client open while the first, of a mount that was unmounted lazily, still has its
// session file. A third takes over what both have left, whatever the names of their files.
func TestClientBesideOneThatLingers(t *testing.T) {
	node := startServers(t, 1)[0]
	file := filepath.Join(t.TempDir(), "mount.session")
	files := func() (found []string) {
		found, err := filepath.Glob(file + "*")
		require.NoError(t, err)
		return found
	}
	var sessions []ids.Session
	var lingering []*session.Client
	for i := range 2 {
		client := openClient(t, node, file)
		require.NotContains(t, sessions, client.Session())
		sessions, lingering = append(sessions, client.Session()), append(lingering, client)

		name := fmt.Sprint("untold", i)
		client.BeginUntold(t, createOp(name))
	}
	require.Equal(t, []string{file, file + ".1"}, files())
	for _, client := range lingering {
		client.Die(t)
	}

	heir := openClient(t, node, file)
	require.Equal(t, sessions[0], heir.Session())
	require.Equal(t, []string{file}, files())
	for i := range lingering {
		require.Equal(t, storepb.Code_NOT_FOUND, lookup(t, heir, fmt.Sprint("untold", i)), "of the process before it")
	}
}

// TestClientPrefersASessionThatWasLeft has a file with a session behind one that is in use.
func TestClientPrefersASessionThatWasLeft(t *testing.T) {
	node := startServers(t, 1)[0]
	file := filepath.Join(t.TempDir(), "mount.session")
	openClient(t, node, file)
	dead := openClient(t, node, file)
	id := dead.Session()
	dead.Die(t)
	require.Equal(t, id, openClient(t, node, file).Session())
}

// TestClientGoesOnAfterAKill has all that the client before it had, but for what that had under way. A request that waited for a lock keeps
// its place for a moment and gets none.
func TestClientGoesOnAfterAKill(t *testing.T) {
	node := startServers(t, 1)[0]
	file := filepath.Join(t.TempDir(), "mount.session")
	dead := openClient(t, node, file)
	held := takeFlock(t, dead, "told", 1)
	startWaiting(t, dead, held, 2)
	id := dead.Session()
	dead.BeginUntold(t, createOp("untold"))
	left, err := os.OpenFile(file, os.O_RDWR, 0)
	require.NoError(t, err)
	dead.Die(t)

	heir, err := node.OpenClient(t.Context(), session.Config{Host: "h", OpTimeout: testWait, Inherited: left, Logger: quietLogger()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = heir.Close(context.Background()) })
	require.Equal(t, id, heir.Session())
	require.Equal(t, storepb.Code_OK, create(t, heir, "untold"), "it was taken back")
	try := func(owner uint64) storepb.Code {
		op := &storepb.TakeLock{Ino: held.GetIno(), Kind: held.GetKind(), Type: held.GetType(), Owner: owner}
		result, err := heir.TakeLock(t.Context(), &storepb.Caller{}, op)
		require.NoError(t, err)
		return result.GetCode()
	}
	require.Equal(t, storepb.Code_WOULD_BLOCK, try(3), "the first has it still")
	dropLocks(t, heir, held, 1)
	require.Equal(t, storepb.Code_OK, try(3), "the second does not wait any more")
}
