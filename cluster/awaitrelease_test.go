package cluster

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

func TestReleaseQuestions(t *testing.T) {
	q := newReleaseQuestions()
	holder := advisoryOwner{session: 1, ino: 2, kind: storepb.LockKind_FLOCK, number: 3}
	ask := func(limit time.Duration) <-chan bool {
		answered := make(chan bool, 1)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), limit)
			defer cancel()
			answered <- q.ask(ctx, holder)
		}()
		return answered
	}
	first, second := ask(testWait), ask(testWait)
	require.Eventually(t, func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.of(1).open[holder] != nil && q.of(1).open[holder].askers == 2
	}, testWait, time.Millisecond)
	questions := q.fetch(t.Context(), 1)
	require.Len(t, questions, 1, "both ask the same")
	require.Equal(t, holder, ownerOf(questions[0].GetHolder()))
	q.answer(2, questions[0].GetNumber(), true) // a session answers for itself only
	require.Empty(t, first)
	q.answer(1, questions[0].GetNumber(), true)
	require.True(t, <-first)
	require.True(t, <-second)
	q.answer(1, questions[0].GetNumber(), false)

	require.False(t, <-ask(time.Millisecond), "nobody fetches the question")
	began := time.Now()
	require.False(t, <-ask(testWait), "a silent mount is not asked again")
	require.Less(t, time.Since(began), testWait/2)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.Empty(t, q.fetch(ended, 1), "the question is over")
	late := ask(testWait)
	require.Eventually(t, func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return len(q.of(1).open) == 1
	}, testWait, time.Millisecond)
	require.Empty(t, q.fetch(ended, 1), "a request that is over takes no question from the next one")
	questions = q.fetch(t.Context(), 1)
	require.Len(t, questions, 1)
	q.answer(1, questions[0].GetNumber(), false)
	require.False(t, <-late)
	require.Empty(t, q.sessions[1].open)
}

// TestAMountIsAskedWhetherALockIsBeingReleased has two clients of a node, as their mounts use them.
func TestAMountIsAskedWhetherALockIsBeingReleased(t *testing.T) {
	node := startNodes(t, 1)[0]
	holder, other := openTestClient(t, node, ""), openTestClient(t, node, "")
	releasing := make(chan ids.Owner, 1)
	go holder.AnswerReleases(t.Context(), func(_ ids.Inode, _ storepb.LockKind, owner ids.Owner) bool {
		releasing <- owner
		return true
	})
	created, err := holder.Mutate(t.Context(), &storepb.Caller{}, &storepb.Op{Op: &storepb.Op_Create{Create: &storepb.Create{Parent: 1, Name: []byte("f"), Mode: 0o100644}}})
	require.NoError(t, err)
	wanted := func() *storepb.TakeLock {
		return &storepb.TakeLock{
			Ino: created.GetAttr().GetIno(), Kind: storepb.LockKind_FLOCK, Owner: 7, Type: storepb.LockType_EXCLUSIVE, End: math.MaxInt64,
		}
	}
	lock := func(c interface {
		TakeLock(context.Context, *storepb.Caller, *storepb.TakeLock) (*storepb.Result, error)
	}) *storepb.Result {
		result, err := c.TakeLock(t.Context(), &storepb.Caller{}, wanted())
		require.NoError(t, err)
		return result
	}
	require.Equal(t, storepb.Code_OK, lock(holder).GetCode())
	refused := lock(other)
	require.Equal(t, storepb.Code_WOULD_BLOCK, refused.GetCode())
	conflict := refused.GetAdvisoryLocks()[0]
	require.True(t, other.AwaitRelease(t.Context(), wanted(), conflict))
	require.Equal(t, ids.Owner(7), <-releasing)

	for name, change := range map[string]func(*storepb.TakeLock, *storepb.AdvisoryLock){
		"another owner":        func(_ *storepb.TakeLock, conflict *storepb.AdvisoryLock) { conflict.Owner++ },
		"another file":         func(_ *storepb.TakeLock, conflict *storepb.AdvisoryLock) { conflict.Ino++ },
		"another kind":         func(_ *storepb.TakeLock, conflict *storepb.AdvisoryLock) { conflict.Kind = storepb.LockKind_RECORD },
		"a session of its own": func(_ *storepb.TakeLock, conflict *storepb.AdvisoryLock) { conflict.Session = uint64(other.Session()) },
		"another kind wanted":  func(wanted *storepb.TakeLock, _ *storepb.AdvisoryLock) { wanted.Kind = storepb.LockKind_RECORD },
		"nothing wanted":       func(wanted *storepb.TakeLock, _ *storepb.AdvisoryLock) { wanted.Reset() },
	} {
		wanted, conflict := wanted(), proto.CloneOf(conflict)
		change(wanted, conflict)
		require.True(t, other.AwaitRelease(t.Context(), wanted, conflict), "%s: no lock is in the way", name)
		require.Empty(t, releasing, "%s: no mount is asked about a lock that is not in the way", name)
	}

	reply, err := node.ReleaseQuestions(t.Context(), &clusterpb.ReleaseQuestionsRequest{Session: uint64(other.Session())})
	require.NoError(t, err)
	require.True(t, reply.GetNoLocks(), "nothing is asked of a session without locks")
}

// TestARefusedRequestWaitsFor50MillisecondsInAll, whatever does not answer.
func TestARefusedRequestWaitsFor50MillisecondsInAll(t *testing.T) {
	node := startNodes(t, 1)[0]
	holder, other := openTestClient(t, node, ""), openTestClient(t, node, "")
	asked, slow := make(chan struct{}, 10), make(chan struct{})
	defer close(slow)
	go holder.AnswerReleases(t.Context(), func(ids.Inode, storepb.LockKind, ids.Owner) bool {
		asked <- struct{}{}
		<-slow
		return true
	})
	created, err := holder.Mutate(t.Context(), &storepb.Caller{}, &storepb.Op{Op: &storepb.Op_Create{Create: &storepb.Create{Parent: 1, Name: []byte("f"), Mode: 0o100644}}})
	require.NoError(t, err)
	wanted := &storepb.TakeLock{
		Ino: created.GetAttr().GetIno(), Kind: storepb.LockKind_FLOCK, Owner: 7, Type: storepb.LockType_EXCLUSIVE, End: math.MaxInt64,
	}
	_, err = holder.TakeLock(t.Context(), &storepb.Caller{}, proto.CloneOf(wanted))
	require.NoError(t, err)
	refused, err := other.TakeLock(t.Context(), &storepb.Caller{}, proto.CloneOf(wanted))
	require.NoError(t, err)
	shortest := time.Hour // of several: the machine may be loaded
	for range 5 {
		began := time.Now()
		require.False(t, other.AwaitRelease(t.Context(), wanted, refused.GetAdvisoryLocks()[0]))
		shortest = min(shortest, time.Since(began))
		<-asked
	}
	require.GreaterOrEqual(t, shortest, rpc.ReleaseWait-time.Millisecond)
	require.Less(t, shortest, 2*rpc.ReleaseWait)
}
