package cluster

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
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
	lock := func(c interface {
		TakeLock(context.Context, *storepb.Caller, *storepb.TakeLock) (*storepb.Result, error)
	}) *storepb.Result {
		result, err := c.TakeLock(t.Context(), &storepb.Caller{}, &storepb.TakeLock{
			Ino: created.GetAttr().GetIno(), Kind: storepb.LockKind_FLOCK, Owner: 7, Type: storepb.LockType_EXCLUSIVE, End: math.MaxInt64,
		})
		require.NoError(t, err)
		return result
	}
	require.Equal(t, storepb.Code_OK, lock(holder).GetCode())
	refused := lock(other)
	require.Equal(t, storepb.Code_WOULD_BLOCK, refused.GetCode())
	require.True(t, other.AwaitRelease(t.Context(), refused.GetAdvisoryLocks()[0]))
	require.Equal(t, ids.Owner(7), <-releasing)

	reply, err := node.ReleaseQuestions(t.Context(), &clusterpb.ReleaseQuestionsRequest{Session: uint64(other.Session())})
	require.NoError(t, err)
	require.True(t, reply.GetNoLocks(), "nothing is asked of a session without locks")
}
