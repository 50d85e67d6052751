package forrststore

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster"
	"lockfs/cluster/session"
	"lockfs/formats/forrst"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// testWait is far beyond what anything here takes on a busy machine.
const testWait = 30 * time.Second

// newStores opens the stores of some servers, as far as sessions make them.
func newStores(t testing.TB, n int) []*Store {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	logger := slog.New(slog.DiscardHandler)
	node, err := cluster.Open(cluster.Config{Name: "n", DataDir: filepath.Join(t.TempDir(), "n"), Bootstrap: true, Logger: logger})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, node.Close()) })
	require.NoError(t, node.WaitReady(ctx))
	stores := make([]*Store, n)
	for i := range stores {
		client, err := node.OpenClient(ctx, session.Config{Host: "h", NoLockDelay: true, Logger: logger})
		require.NoError(t, err)
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), testWait)
			defer cancel()
			require.NoError(t, client.Close(ctx))
		})
		stores[i], err = Open(ctx, client)
		require.NoError(t, err)
	}
	return stores
}

const key = "lock:/f:%k"

// want is what a request asks for that does not wait.
func want(id string) forrst.Want {
	return forrst.Want{Key: key, Owner: "owner of " + id, TTL: time.Hour, Request: forrst.Identify(id, []byte(id))}
}

// once is a request whose other attempts count, for some time after its lock has gone.
func once(id string, within time.Duration) forrst.Want {
	w := want(id)
	w.Once, w.Within = true, within
	return w
}

func record(t testing.TB, s *Store, grant *forrst.Grant, answer string) {
	t.Helper()
	require.NoError(t, s.Record(t.Context(), grant, []byte(answer), time.Minute))
}

// requireAnswered tells that a request is answered what another attempt of it was.
func requireAnswered(t testing.TB, s *Store, w forrst.Want, answer string) {
	t.Helper()
	grant, err := s.Acquire(t.Context(), w)
	require.NoError(t, err)
	require.Equal(t, answer, string(grant.Answer))
	require.Nil(t, grant.Lock)
}

// release releases a lock, and tells whether that had been done before.
func release(t testing.TB, s *Store, owner string, by forrst.Identity, within time.Duration) (again bool) {
	t.Helper()
	again, err := s.Release(t.Context(), key, owner, by, within)
	require.NoError(t, err)
	return again
}

func requireNotReleased(t testing.TB, s *Store, owner string, by forrst.Identity, why error) {
	t.Helper()
	_, err := s.Release(t.Context(), key, owner, by, time.Hour)
	require.ErrorIs(t, err, why)
}

func acquire(t testing.TB, s *Store, w forrst.Want) *forrst.Grant {
	t.Helper()
	grant, err := s.Acquire(t.Context(), w)
	require.NoError(t, err)
	require.Nil(t, grant.Answer)
	return grant
}

// outcome is what became of a request that waited.
type outcome struct {
	id    string
	grant *forrst.Grant
	err   error
}

// begin has a request wait, and returns once it stands in line behind so many.
func begin(ctx context.Context, t testing.TB, s *Store, w forrst.Want, behind int, ended chan<- outcome) {
	t.Helper()
	go func() {
		grant, err := s.Acquire(ctx, w)
		ended <- outcome{w.Request.ID, grant, err}
	}()
	inLine(t, s, behind+1)
}

// inLine waits until so many requests hold or wait for a place.
func inLine(t testing.TB, s *Store, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		at, err := s.where(t.Context())
		require.NoError(t, err)
		result, err := s.client.Query(t.Context(), &storepb.Query{Query: &storepb.Query_ListAdvisoryLocks{
			ListAdvisoryLocks: &storepb.ListAdvisoryLocks{Ino: uint64(at.queue), Viewer: &storepb.Viewer{}},
		}})
		require.NoError(t, err)
		standing := 0
		for _, a := range result.GetAdvisoryLocks() {
			if a.GetInterrupted() == 0 {
				standing++
			}
		}
		return standing == n
	}, testWait, 5*time.Millisecond)
}

func next(t testing.TB, ended <-chan outcome) outcome {
	t.Helper()
	select {
	case o := <-ended:
		return o
	case <-time.After(testWait):
		t.Fatal("nobody's turn comes")
		return outcome{}
	}
}

func TestLockIsFileWithItsContent(t *testing.T) {
	s := newStores(t, 2)
	grant := acquire(t, s[0], want("a"))
	require.NotZero(t, grant.Token)
	there, lock, err := s[1].find(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, ".forrst/lock:%2Ff:%25k", string(there.GetPath()))
	require.Equal(t, grant.Lock, lock)
	require.Equal(t, grant.Token, there.GetToken())
	require.Equal(t, storepb.Format_FORRST, there.GetFacts().GetFormat())
	require.Equal(t, "owner of a", there.GetFacts().GetHolder())
	require.Equal(t, lock.ExpiresAt.UnixNano(), there.GetFacts().GetExpiresAt())
	require.Equal(t, want("a").Request.String(), lock.Request)
	got, err := s[1].Lock(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, lock, got)

	_, err = s[1].Acquire(t.Context(), want("b"))
	require.ErrorIs(t, err, forrst.ErrHeld)
	require.NoError(t, s[0].Drop(t.Context(), grant))
	require.NoError(t, s[0].Drop(t.Context(), grant))
	second := acquire(t, s[1], want("b"))
	require.Greater(t, second.Token, grant.Token)
	require.NoError(t, s[0].Drop(t.Context(), grant), "not another one of that name")
	got, err = s[0].Lock(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, second.Lock, got)
}

func TestLockExpiresByItself(t *testing.T) {
	s := newStores(t, 1)[0]
	short := want("a")
	short.TTL = 200 * time.Millisecond
	first := acquire(t, s, short)
	waits := want("b")
	waits.Wait = testWait
	grant := acquire(t, s, waits)
	require.False(t, grant.Lock.AcquiredAt.Before(first.Lock.ExpiresAt))
	requireNotReleased(t, s, short.Owner, short.Request, forrst.ErrNotOwner)
	require.NoError(t, s.Drop(t.Context(), grant))
	requireNotReleased(t, s, short.Owner, short.Request, forrst.ErrNotFound) // it had expired
}

func TestRequestsAreServedInTheOrderInWhichTheyCame(t *testing.T) {
	s := newStores(t, 3)
	grant := acquire(t, s[0], want("first"))
	ended := make(chan outcome, 9)
	for i := range 6 {
		w := want(fmt.Sprint(i))
		w.Wait = testWait
		begin(t.Context(), t, s[i%3], w, i, ended)
	}
	for i := range 6 {
		require.NoError(t, s[i%3].Drop(t.Context(), grant))
		o := next(t, ended)
		require.NoError(t, o.err)
		require.Equal(t, fmt.Sprint(i), o.id)
		grant = o.grant
		_, err := s[0].Acquire(t.Context(), want("impatient"))
		require.ErrorIs(t, err, forrst.ErrHeld)
	}
	inLine(t, s[0], 0)
}

func TestRequestLeavesTheLine(t *testing.T) {
	s := newStores(t, 2)
	grant := acquire(t, s[0], want("first"))
	ended := make(chan outcome, 9)
	timed := want("timed")
	timed.Wait = time.Millisecond
	_, err := s[1].Acquire(t.Context(), timed)
	require.ErrorIs(t, err, forrst.ErrHeld)

	ctx, hangUp := context.WithCancel(t.Context())
	for i, id := range []string{"head", "behind"} {
		w := want(id)
		w.Wait = testWait
		begin(ctx, t, s[i], w, i, ended)
	}
	hangUp()
	for range 2 {
		require.ErrorIs(t, next(t, ended).err, context.Canceled)
	}
	inLine(t, s[0], 0)
	w := want("last")
	w.Wait = testWait
	begin(t.Context(), t, s[1], w, 0, ended)
	require.NoError(t, s[0].Drop(t.Context(), grant))
	require.NoError(t, next(t, ended).err)
}

func TestRelease(t *testing.T) {
	s := newStores(t, 2)
	by := func(id string) forrst.Identity { return forrst.Identify(id, []byte("release "+id)) }
	force := func(id string, within time.Duration) (bool, error) {
		return s[len(id)%2].ForceRelease(t.Context(), key, by(id), within)
	}
	requireNotReleased(t, s[0], "me", by("1"), forrst.ErrNotFound)
	_, err := force("1", time.Hour)
	require.ErrorIs(t, err, forrst.ErrNotFound)

	mine := want("a")
	acquire(t, s[0], mine)
	requireNotReleased(t, s[1], "me", by("1"), forrst.ErrNotOwner)
	require.False(t, release(t, s[1], mine.Owner, by("1"), time.Hour))
	require.True(t, release(t, s[0], mine.Owner, by("1"), time.Hour), "asked again elsewhere")
	requireNotReleased(t, s[0], mine.Owner, by("2"), forrst.ErrReleased)
	for _, within := range []time.Duration{0, time.Nanosecond} {
		_, err := s[0].Release(t.Context(), key, mine.Owner, by("1"), within)
		require.ErrorIs(t, err, forrst.ErrReleased, "too late")
	}

	acquire(t, s[0], want("b"))
	require.True(t, release(t, s[0], mine.Owner, by("1"), time.Hour), "asked again, much later")
	requireNotReleased(t, s[0], mine.Owner, by("2"), forrst.ErrNotOwner)
	again, err := force("3", time.Hour)
	require.NoError(t, err)
	require.False(t, again)
	again, err = force("3", time.Hour)
	require.NoError(t, err)
	require.True(t, again)
	_, err = force("3", 0)
	require.ErrorIs(t, err, forrst.ErrNotFound, "too late")
	_, err = force("4", time.Hour)
	require.ErrorIs(t, err, forrst.ErrNotFound)
	requireNotReleased(t, s[0], want("b").Owner, by("5"), forrst.ErrReleased)
	lock, err := s[0].Lock(t.Context(), key)
	require.NoError(t, err)
	require.Nil(t, lock)
}

func TestBookkeepingIsNotListed(t *testing.T) {
	s := newStores(t, 1)[0]
	w := want("a")
	w.Wait = testWait
	grant := acquire(t, s, w)
	record(t, s, grant, "answer")
	list := &storepb.Query{Query: &storepb.Query_ListLocks{ListLocks: &storepb.ListLocks{Viewer: &storepb.Viewer{}}}}
	result, err := s.client.Query(t.Context(), list)
	require.NoError(t, err)
	require.Len(t, result.GetLocks(), 1)
	require.Equal(t, w.Owner, result.GetLocks()[0].GetFacts().GetHolder())
	require.NoError(t, s.Drop(t.Context(), grant))
	result, err = s.client.Query(t.Context(), list)
	require.NoError(t, err)
	require.Empty(t, result.GetLocks())
	events := &storepb.Query{Query: &storepb.Query_ListEvents{ListEvents: &storepb.ListEvents{Viewer: &storepb.Viewer{}}}}
	result, err = s.client.Query(t.Context(), events)
	require.NoError(t, err)
	ofLocks := slices.DeleteFunc(result.GetEvents(), func(e *storepb.Event) bool { return len(e.GetPath()) == 0 })
	require.Len(t, ofLocks, 2, "%v", result)
}

// A directory that an administrator removed is made again.
func TestRemovedDirectory(t *testing.T) {
	s := newStores(t, 1)[0]
	at, err := s.where(t.Context())
	require.NoError(t, err)
	for _, gone := range []*storepb.Unlink{
		{Parent: uint64(at.locks), Name: []byte(queueName)},
		{Parent: uint64(at.locks), Name: []byte(repliesName), Directory: true},
		{Parent: namespace.RootIno, Name: []byte(dirName), Directory: true},
	} {
		result, err := s.mutate(t.Context(), &storepb.Op{Op: &storepb.Op_Unlink{Unlink: gone}})
		require.NoError(t, err)
		require.Equal(t, storepb.Code_OK, result.GetCode())
	}
	grant := acquire(t, s, want("a"))
	w := want("b")
	w.Wait = time.Millisecond
	_, err = s.Acquire(t.Context(), w)
	require.ErrorIs(t, err, forrst.ErrHeld)
	record(t, s, grant, "answer")
	require.NoError(t, s.Drop(t.Context(), grant))
}

func TestSomebodyElsesDirectory(t *testing.T) {
	s := newStores(t, 1)[0]
	op := &storepb.Create{Parent: namespace.RootIno, Name: []byte("theirs"), Mode: 0o40755, Exclusive: true}
	result, err := s.client.Mutate(t.Context(), &storepb.Caller{Uid: 4711}, &storepb.Op{Op: &storepb.Op_Create{Create: op}})
	require.NoError(t, err)
	require.Equal(t, storepb.Code_OK, result.GetCode())
	_, err = s.ensure(t.Context(), namespace.RootIno, "theirs", 0o40755)
	require.ErrorContains(t, err, "belongs to user 4711")
	_, err = s.ensure(t.Context(), namespace.RootIno, "theirs", 0o100600)
	require.ErrorContains(t, err, "another type")
}
