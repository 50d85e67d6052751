package session_test

import (
	"fmt"
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
