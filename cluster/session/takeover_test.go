package session_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/session"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

func TestClientTakesOverAndCancels(t *testing.T) {
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

// TestAJournalThatIsBehind has a disk that has lost what a journal said last. Commands are not answered what others were that had their
// numbers.
func TestAJournalThatIsBehind(t *testing.T) {
	node := startServers(t, 1)[0]
	file := filepath.Join(t.TempDir(), "mount.session")
	dead := openClient(t, node, file)
	require.Equal(t, storepb.Code_OK, create(t, dead, "first"))
	behind, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, storepb.Code_OK, create(t, dead, "second"))
	id := dead.Session()
	dead.Die(t)
	require.NoError(t, os.WriteFile(file+".behind", behind, 0o600))
	require.NoError(t, os.Rename(file+".behind", file))

	heir := openClient(t, node, file)
	require.Equal(t, id, heir.Session())
	require.Equal(t, storepb.Code_EXISTS, create(t, heir, "second"))
	require.Equal(t, storepb.Code_OK, create(t, heir, "third"))
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

// TestClientGoesOnThroughOthersUntilItsNodeIsThere hands a session over to a client that has no node yet, and later gets one while calls are
// under way. Each is done once.
func TestClientGoesOnThroughOthersUntilItsNodeIsThere(t *testing.T) {
	const creators, names = 4, 50
	servers := startServers(t, 3)
	node := servers[1]
	first := openClient(t, node, filepath.Join(t.TempDir(), "mount.session"))
	held := takeFlock(t, first, "held", 1)
	id := first.Session()
	file, err := first.HandOver(t.Context())
	require.NoError(t, err)

	second, err := session.Dial(t.Context(), []string{servers[0].address, servers[2].address},
		session.Config{Host: "h", OpTimeout: testWait, Inherited: file, Logger: quietLogger()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = second.Close(context.Background()) })
	require.Equal(t, id, second.Session())
	made := make(chan string, creators*names)
	for creator := range creators {
		go func() {
			for n := range names {
				result, err := second.Mutate(t.Context(), &storepb.Caller{}, createOp(fmt.Sprint(creator, "-", n)))
				made <- fmt.Sprint(result.GetCode(), " ", err)
			}
		}()
	}
	for n := range creators * names {
		if n == names {
			node.Adopt(second)
		}
		require.Equal(t, "OK <nil>", <-made, "each is done once")
	}
	other := openClient(t, servers[2], "")
	try := func() storepb.Code {
		op := &storepb.TakeLock{Ino: held.GetIno(), Kind: held.GetKind(), Type: held.GetType(), Owner: 1}
		result, err := other.TakeLock(t.Context(), &storepb.Caller{}, op)
		require.NoError(t, err)
		return result.GetCode()
	}
	require.Equal(t, storepb.Code_WOULD_BLOCK, try())
	dropLocks(t, second, held, 1)
	require.Equal(t, storepb.Code_OK, try())
}

// TestClientGoesOnAfterAKill has all that the client before it had, but for what that had under way. A request that waited for a lock is waited
// for again by its owner. One that no program waits for any more gets no lock.
func TestClientGoesOnAfterAKill(t *testing.T) {
	node := startServers(t, 1)[0]
	file := filepath.Join(t.TempDir(), "mount.session")
	dead := openClient(t, node, file)
	held := takeFlock(t, dead, "told", 1)
	waiting, _ := startWaiting(t, dead, held, 2)
	startWaiting(t, dead, held, 4)
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
	again := &storepb.TakeLock{Ino: held.GetIno(), Kind: held.GetKind(), Type: held.GetType(), Owner: 2, Wait: true}
	result, request, err := heir.RequestLock(&storepb.Caller{}, again)
	require.NoError(t, err)
	require.Equal(t, storepb.Code_WAITING, result.GetCode())
	require.Equal(t, waiting.GetSeq(), request.GetSeq())
	dropLocks(t, heir, held, 1)
	result, err = heir.AwaitLock(t.Context(), nil, request)
	require.NoError(t, err)
	require.Equal(t, storepb.Code_OK, result.GetCode())
	require.Eventually(t, func() bool {
		list := &storepb.Query_ListAdvisoryLocks{ListAdvisoryLocks: &storepb.ListAdvisoryLocks{Ino: held.GetIno(), Viewer: &storepb.Viewer{}}}
		result, err := heir.Query(t.Context(), &storepb.Query{Query: list})
		return err == nil && len(result.GetAdvisoryLocks()) == 1
	}, testWait, time.Millisecond, "the fourth is interrupted")
	dropLocks(t, heir, held, 2)
	require.Equal(t, storepb.Code_OK, try(3))
}

// goingOn is a client that goes on with the session of another one, once others may be asked through it that have not answered yet, and what
// says that it has been opened.
func goingOn(ctx context.Context, t testing.TB, left *session.Client, servers ...string) (*session.Client, <-chan error) {
	t.Helper()
	file, err := left.HandOver(t.Context())
	require.NoError(t, err)
	begun, opened := make(chan *session.Client, 1), make(chan error, 1)
	go func() {
		_, err := session.Dial(ctx, servers, session.Config{
			Host: "h", OpTimeout: time.Hour, Inherited: file, Begun: func(c *session.Client) { begun <- c }, Logger: quietLogger(),
		})
		opened <- err
	}()
	return <-begun, opened
}

// silentServer accepts connections and answers nothing.
func silentServer(t testing.TB) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, listener.Close()) })
	return listener.Addr().String()
}

// TestClientThatGoesOnThroughTheSilentIsToldToEnd is one that would wait for an hour else.
func TestClientThatGoesOnThroughTheSilentIsToldToEnd(t *testing.T) {
	node := startServers(t, 1)[0]
	ctx, end := context.WithCancel(t.Context())
	client, opened := goingOn(ctx, t, openClient(t, node, filepath.Join(t.TempDir(), "mount.session")), silentServer(t))
	end()
	require.NoError(t, <-opened)
	client.Die(t)
}

// TestClientThatGoesOnThroughTheSilentTurnsToItsNode though it was not answered yet.
func TestClientThatGoesOnThroughTheSilentTurnsToItsNode(t *testing.T) {
	node := startServers(t, 1)[0]
	first := openClient(t, node, filepath.Join(t.TempDir(), "mount.session"))
	id := first.Session()
	client, opened := goingOn(t.Context(), t, first, silentServer(t))
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	node.Adopt(client)
	require.NoError(t, <-opened)
	require.Equal(t, id, client.Session())
	require.Equal(t, storepb.Code_OK, create(t, client, "made"))
}

// TestNothingThatIsRemovedIsMissedByWhoTurnsToItsNode removes a file at the very moment in which a client turns to its node.
func TestNothingThatIsRemovedIsMissedByWhoTurnsToItsNode(t *testing.T) {
	const names = 20
	servers := startServers(t, 2)
	node := servers[1]
	first := openClient(t, node, filepath.Join(t.TempDir(), "mount.session"))
	other := openClient(t, servers[0], "")
	for n := range names {
		require.Equal(t, storepb.Code_OK, create(t, other, fmt.Sprint("file", n)))
	}
	client, opened := goingOn(t.Context(), t, first, servers[0].address)
	require.NoError(t, <-opened)
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	told, heard := make(chan string, 1000), make(map[string]bool)
	go client.FollowRemovals(t.Context(), func(gone namespace.Removal) { told <- gone.Name })
	remove := func(name string) {
		op := &storepb.Op{Op: &storepb.Op_Unlink{Unlink: &storepb.Unlink{Parent: namespace.RootIno, Name: []byte(name)}}}
		result, err := other.Mutate(t.Context(), &storepb.Caller{}, op)
		require.NoError(t, err)
		require.Equal(t, storepb.Code_OK, result.GetCode())
	}
	for following := false; !following; { // it hears of nothing that was removed before it began to ask
		require.Contains(t, []storepb.Code{storepb.Code_OK, storepb.Code_EXISTS}, create(t, other, "first"))
		remove("first")
		select {
		case <-told:
			following = true
		case <-time.After(10 * time.Millisecond):
		}
	}
	for n := range names {
		if n == names/2 {
			node.Adopt(client)
		}
		remove(fmt.Sprint("file", n))
	}
	for missing := names; missing > 0; {
		select {
		case name := <-told:
			if name != "first" && !heard[name] {
				heard[name] = true
				missing--
			}
		case <-time.After(testWait):
			t.Fatalf("told of %d only: %v", len(heard), heard)
		}
	}
}
