package raftstore

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lockfs/raftstore/codec"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// who is an owner of advisory locks, and the session of its mount.
type who struct{ session, owner uint64 }

var anna, bert = who{1, 10}, who{2, 20}

const (
	exclusive = storepb.LockType_EXCLUSIVE
	nothing   = storepb.LockType_UNLOCK
	someFile  = syscall.S_IFREG | 0o644
)

// awaited is an FSM with a file that anna has locked and for which bert waits.
type awaited struct {
	*FSM
	t     *testing.T
	index uint64
	seqs  map[uint64]uint64
	ino   uint64
}

func newAwaited(t *testing.T) *awaited {
	a := &awaited{FSM: NewFSM(namespace.New(), "self", func(err error) { require.NoError(t, err) }), t: t, seqs: map[uint64]uint64{}}
	for _, w := range []who{anna, bert} {
		a.apply(&storepb.Command{Session: w.session, Op: &storepb.Op{Op: &storepb.Op_OpenSession{OpenSession: &storepb.OpenSession{Host: fmt.Sprint(w.session)}}}})
	}
	a.ino = a.do(anna, &storepb.Op{Op: &storepb.Op_Create{Create: &storepb.Create{Parent: namespace.RootIno, Name: []byte("file"), Mode: someFile}}}).GetAttr().GetIno()
	require.Equal(t, storepb.Code_OK, a.lock(anna, exclusive))
	require.Equal(t, storepb.Code_WAITING, a.lock(bert, exclusive))
	return a
}

func (a *awaited) apply(cmd *storepb.Command) *storepb.Result {
	a.index++
	cmd.Time = int64(a.index)
	data, err := codec.EncodeCommand(cmd)
	require.NoError(a.t, err)
	return a.Apply(&raft.Log{Index: a.index, Data: data}).(*storepb.Result)
}

func (a *awaited) do(w who, op *storepb.Op) *storepb.Result {
	a.seqs[w.session]++
	return a.apply(&storepb.Command{Session: w.session, Seq: a.seqs[w.session], Op: op})
}

func (a *awaited) lock(w who, to storepb.LockType) storepb.Code {
	return a.do(w, &storepb.Op{Op: &storepb.Op_TakeLock{TakeLock: &storepb.TakeLock{Ino: a.ino, Type: to, Owner: w.owner, Session: w.session, Wait: true}}}).GetCode()
}

// await waits for the end of bert's request in several goroutines, from now on.
func (a *awaited) await(ctx context.Context, askers int) (answers func() []storepb.Code) {
	query := &storepb.AwaitLock{
		Session: bert.session, Seq: a.seqs[bert.session], Ino: a.ino, Owner: bert.owner, Type: exclusive,
	}
	codes, after := make([]storepb.Code, askers), ids.Index(a.index)
	var all sync.WaitGroup
	for i := range askers {
		all.Go(func() {
			waits, err := a.EndedWaits(ctx, &WaitsQuestion{Session: ids.Session(bert.session), After: after})
			assert.NoError(a.t, err)
			seq := ids.Sequence(query.GetSeq())
			if codes[i] = storepb.Code_WAITING; waits.Whole || slices.Contains(append(waits.Granted, waits.Ended...), seq) {
				result, err := a.AwaitLock(query)
				assert.NoError(a.t, err)
				codes[i] = result.GetCode()
				assert.True(a.t, waits.Whole || slices.Contains(waits.Granted, seq) == (codes[i] == storepb.Code_OK))
			}
		})
	}
	return func() []storepb.Code {
		all.Wait()
		return codes
	}
}

// settle lets the askers wait.
func (a *awaited) settle() {
	require.Eventually(a.t, func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(a.waits.asking) == 1
	}, time.Minute, time.Millisecond)
}

func (a *awaited) requireNobodyWaits() {
	a.mu.Lock()
	defer a.mu.Unlock()
	require.Empty(a.t, a.waits.asking)
}

func TestAwaitLock(t *testing.T) {
	const granted, gone = storepb.Code_OK, storepb.Code_NOT_FOUND
	for name, test := range map[string]struct {
		happens func(a *awaited)
		want    storepb.Code
	}{
		"granted": {func(a *awaited) { a.lock(anna, nothing) }, granted},
		"dropped": {func(a *awaited) {
			a.do(bert, &storepb.Op{Op: &storepb.Op_DropLocks{DropLocks: &storepb.DropLocks{Ino: a.ino, Owners: []uint64{bert.owner}}}})
		}, gone},
		"interrupted": {func(a *awaited) {
			a.do(bert, &storepb.Op{Op: &storepb.Op_InterruptLock{InterruptLock: &storepb.InterruptLock{Seq: a.seqs[bert.session]}}})
		}, gone},
		"cancelled": {func(a *awaited) {
			a.apply(&storepb.Command{Session: bert.session, Op: &storepb.Op{Op: &storepb.Op_Cancel{Cancel: &storepb.Cancel{Seq: a.seqs[bert.session]}}}})
		}, gone},
		"the session ends": {func(a *awaited) {
			a.apply(&storepb.Command{Session: bert.session, Op: &storepb.Op{Op: &storepb.Op_CloseSession{CloseSession: &storepb.CloseSession{}}}})
		}, gone},
		"the other one's end": {func(a *awaited) {
			a.apply(&storepb.Command{Session: anna.session, Op: &storepb.Op{Op: &storepb.Op_CloseSession{CloseSession: &storepb.CloseSession{}}}})
		}, granted},
		"restored": {func(a *awaited) {
			ahead := newAwaited(a.t)
			ahead.lock(anna, nothing)
			require.NoError(a.t, a.Restore(io.NopCloser(bytes.NewReader(snapshotBytes(a.t, ahead.State())))))
		}, granted},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAwaited(t)
			answers := a.await(t.Context(), 3)
			a.settle()
			a.do(anna, &storepb.Op{Op: &storepb.Op_DropLocks{DropLocks: &storepb.DropLocks{}}}) // somebody else's
			test.happens(a)
			require.Equal(t, []storepb.Code{test.want, test.want, test.want}, answers())
			a.requireNobodyWaits()
		})
	}
}

func TestAwaitLockHasAnEnd(t *testing.T) {
	a := newAwaited(t)
	first, cancel := context.WithCancel(t.Context())
	short, long := a.await(first, 1), a.await(t.Context(), 2)
	a.settle()
	require.NoError(t, a.Restore(io.NopCloser(bytes.NewReader(snapshotBytes(t, a.State()))))) // it still waits there
	cancel()
	require.Equal(t, []storepb.Code{storepb.Code_WAITING}, short())
	a.settle()
	a.lock(anna, nothing)
	require.Equal(t, []storepb.Code{storepb.Code_OK, storepb.Code_OK}, long())
	a.requireNobodyWaits()
}

// TestAwaitLockMissesNothing lets locks go from hand to hand while their requests are awaited.
func TestAwaitLockMissesNothing(t *testing.T) {
	a := newAwaited(t)
	const rounds = 300
	const enough = 5 * time.Second // after which who was not told answers that he still waits
	for round := range rounds {
		ctx, cancel := context.WithTimeout(t.Context(), enough)
		answers := a.await(ctx, 1+round%3)
		if round%2 == 0 {
			time.Sleep(time.Duration(round) * time.Microsecond)
		}
		require.Equal(t, storepb.Code_OK, a.lock(anna, nothing))
		for _, code := range answers() {
			require.Equal(t, storepb.Code_OK, code)
		}
		require.NoError(t, ctx.Err(), "it was told in time")
		cancel()
		require.Equal(t, storepb.Code_OK, a.lock(bert, nothing))
		require.Equal(t, storepb.Code_OK, a.lock(anna, exclusive))
		require.Equal(t, storepb.Code_WAITING, a.lock(bert, exclusive))
	}
}
