package forrststore

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/formats/forrst"
	"lockfs/raftstore/storepb"
)

// beginAgain sends another attempt of a request that is under way, and returns once that waits for it.
func beginAgain(ctx context.Context, t testing.TB, s *Store, w forrst.Want, ended chan<- outcome) {
	t.Helper()
	a := &attempt{Store: s, want: w}
	_, own, err := a.holder(ctx)
	require.NoError(t, err)
	require.True(t, own)
	go func() {
		grant, err := s.Acquire(ctx, w)
		ended <- outcome{w.Request.ID, grant, err}
	}()
	inLine(t, s, 0) // it does not wait there
}

func TestAnswerIsFoundByAnotherAttempt(t *testing.T) {
	s := newStores(t, 2)
	w := once("a", time.Hour)
	grant := acquire(t, s[0], w)
	ended := make(chan outcome, 9)
	beginAgain(t.Context(), t, s[1], w, ended) // waits, though it is not asked to
	record(t, s[0], grant, "answer")
	record(t, s[0], grant, "another") // the first one counts
	o := next(t, ended)
	require.NoError(t, o.err)
	require.Equal(t, "answer", string(o.grant.Answer), "also while the lock is kept")
	require.NoError(t, s[0].Drop(t.Context(), grant))
	for _, store := range s {
		requireAnswered(t, store, w, "answer")
	}
	other := w
	other.Request = forrst.Identify("a", []byte("another body"))
	grant = acquire(t, s[0], other)
	require.NoError(t, s[0].Drop(t.Context(), grant))
}

// An attempt that saw the call under way gets its answer, however little that counts afterwards.
func TestAttemptThatWaitedIsAnswered(t *testing.T) {
	s := newStores(t, 2)
	for id, w := range map[string]forrst.Want{"gone": once("gone", 1), "kept": once("kept", 0)} {
		grant := acquire(t, s[0], w)
		a := &attempt{Store: s[1], want: w}
		_, own, err := a.holder(t.Context())
		require.NoError(t, err)
		require.True(t, own, id)
		record(t, s[0], grant, id)
		require.NoError(t, s[0].Drop(t.Context(), grant))
		found, err := a.try(t.Context())
		require.NoError(t, err)
		require.Equal(t, id, string(found.Answer))
		grant = acquire(t, s[1], w) // who comes later has it done again
		require.NoError(t, s[1].Drop(t.Context(), grant))
	}
}

// Whoever waits in line is no reason for an attempt to wait whose answer is there.
func TestAttemptWithAnswerDoesNotStandInLine(t *testing.T) {
	s := newStores(t, 2)
	w := once("a", time.Hour)
	w.Wait = testWait
	grant := acquire(t, s[0], w)
	ended := make(chan outcome, 9)
	other := want("b")
	other.Wait = testWait
	begin(t.Context(), t, s[0], other, 0, ended)
	again := make(chan outcome, 9)
	go func() {
		grant, err := s[1].Acquire(t.Context(), w)
		again <- outcome{w.Request.ID, grant, err}
	}()
	record(t, s[0], grant, "answer")
	require.Equal(t, "answer", string(next(t, again).grant.Answer), "the lock is still held, and b is in line")
	requireAnswered(t, s[1], w, "answer")
	inLine(t, s[0], 1)
	require.NoError(t, s[0].Drop(t.Context(), grant))
	require.NoError(t, next(t, ended).err)
	requireAnswered(t, s[1], w, "answer") // b holds the lock
}

func TestAnswerCountsForSomeTimeAfterItsLock(t *testing.T) {
	s := newStores(t, 1)[0]
	w := once("a", time.Hour)
	grant := acquire(t, s, w)
	record(t, s, grant, "answer")
	require.NoError(t, s.Drop(t.Context(), grant))
	requireAnswered(t, s, w, "answer")
	for _, late := range []forrst.Want{once("a", 1), want("a")} {
		grant = acquire(t, s, late)
		requireAnswered(t, s, w, "answer") // of the call before
		record(t, s, grant, "later")
		require.NoError(t, s.Drop(t.Context(), grant))
		requireAnswered(t, s, w, "later")
		grant.Token-- // of a server that was paused
		record(t, s, grant, "too late")
		requireAnswered(t, s, w, "later")
		grant = acquire(t, s, late)
		record(t, s, grant, "answer")
		require.NoError(t, s.Drop(t.Context(), grant))
	}
}

// The answer to a request that left its lock counts while that very lock is held.
func TestAnswerOfKeptLockCountsAsLongAsThat(t *testing.T) {
	s := newStores(t, 2)
	w := once("a", 0)
	by := forrst.Identify("r", nil)
	for range 2 {
		grant := acquire(t, s[0], w)
		record(t, s[0], grant, "answer")
		for _, store := range s {
			requireAnswered(t, store, w, "answer")
		}
		release(t, s[1], w.Owner, by, 0)

		grant = acquire(t, s[1], w) // another lock of the same owner and request, for which there is no answer yet
		a := &attempt{Store: s[0], want: w}
		answer, err := a.answer(t.Context())
		require.NoError(t, err)
		require.Nil(t, answer)
		there, own, err := a.holder(t.Context())
		require.NoError(t, err)
		require.True(t, own)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		require.ErrorIs(t, a.awaitChange(ctx, there), context.DeadlineExceeded, "it waits for that one's")
		cancel()
		record(t, s[1], grant, "second")
		requireAnswered(t, s[0], w, "second")
		release(t, s[1], w.Owner, by, 0)

		other := acquire(t, s[0], want("c"))
		_, err = s[1].Acquire(t.Context(), w)
		require.ErrorIs(t, err, forrst.ErrHeld)
		require.NoError(t, s[0].Drop(t.Context(), other))
	}

	w.TTL = 200 * time.Millisecond
	grant := acquire(t, s[0], w)
	record(t, s[0], grant, "answer")
	w.Wait = testWait
	require.Eventually(t, func() bool {
		began := s[1].Now()
		later, err := s[1].Acquire(t.Context(), w)
		require.NoError(t, err)
		if later.Answer != nil {
			require.True(t, began.Before(grant.Lock.ExpiresAt))
		}
		return later.Lock != nil
	}, testWait, 5*time.Millisecond)
}

// Without Once an attempt is like any other request.
func TestRequestOfItsOwn(t *testing.T) {
	s := newStores(t, 2)
	w := want("a")
	grant := acquire(t, s[0], w)
	_, err := s[1].Acquire(t.Context(), w)
	require.ErrorIs(t, err, forrst.ErrHeld, "it does not wait")
	record(t, s[0], grant, "answer")
	_, err = s[1].Acquire(t.Context(), w)
	require.ErrorIs(t, err, forrst.ErrHeld, "it is not answered")
	w.Wait = testWait
	ended := make(chan outcome, 9)
	begin(t.Context(), t, s[1], w, 0, ended)
	require.NoError(t, s[0].Drop(t.Context(), grant))
	o := next(t, ended)
	require.NoError(t, o.err)
	require.Nil(t, o.grant.Answer)
	require.Greater(t, o.grant.Token, grant.Token)
}

// TestAnswersExpire after a minute, or after the time for which the store is asked to keep them; the ttl of the lock does not matter.
func TestAnswersExpire(t *testing.T) {
	s := newStores(t, 1)[0]
	for _, c := range []struct{ ttl, keep, least time.Duration }{
		{time.Second, 0, leastKept}, {time.Second, 2 * leastKept, 2 * leastKept}, {30 * leastKept, 2 * leastKept, 2 * leastKept},
	} {
		w := want(c.least.String())
		w.TTL = c.ttl
		grant := acquire(t, s, w)
		require.NoError(t, s.Record(t.Context(), grant, make([]byte, forrst.MaxAnswer), c.keep))
		at, err := s.where(t.Context())
		require.NoError(t, err)
		query := &storepb.GetLock{Parent: uint64(at.replies), Name: []byte(w.Request.Sum)}
		result, err := s.client.Query(t.Context(), &storepb.Query{Query: &storepb.Query_GetLock{GetLock: query}})
		require.NoError(t, err)
		facts := result.GetLocks()[0].GetFacts()
		require.GreaterOrEqual(t, facts.GetExpiresAt(), grant.Lock.AcquiredAt.Add(c.least).UnixNano())
		require.Less(t, facts.GetExpiresAt(), grant.Lock.AcquiredAt.Add(c.least+testWait).UnixNano())
		require.Equal(t, storepb.OnStale_REMOVE, facts.GetOnStale())
		require.NoError(t, s.Drop(t.Context(), grant))
	}
}

// TestAnswersWithoutRoomAreRefused tells a full quota from a store that does not answer.
func TestAnswersWithoutRoomAreRefused(t *testing.T) {
	s := newStores(t, 1)[0]
	grant := acquire(t, s, want("a"))
	err := s.Record(t.Context(), grant, make([]byte, 300<<10), 0)
	require.ErrorIs(t, err, forrst.ErrRefused)
	require.NoError(t, s.Drop(t.Context(), grant))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = s.Record(ctx, grant, nil, 0)
	require.Error(t, err)
	require.NotErrorIs(t, err, forrst.ErrRefused)
}
