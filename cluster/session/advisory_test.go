package session_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/session"
	"lockfs/raftstore/storepb"
)

// startWaiting has an owner wait for the lock that another one has, and answers its request once the cluster has it.
func startWaiting(t *testing.T, client *session.Client, held *storepb.TakeLock, owner uint64) (request *storepb.AdvisoryLock, ended chan *storepb.Result) {
	t.Helper()
	ended = make(chan *storepb.Result, 1)
	op := &storepb.TakeLock{Ino: held.GetIno(), Kind: held.GetKind(), Type: held.GetType(), Owner: owner, Wait: true}
	go func() {
		result, err := client.TakeLock(t.Context(), &storepb.Caller{}, op)
		if err == nil {
			ended <- result
		}
	}()
	require.Eventually(t, func() bool {
		list := &storepb.Query_ListAdvisoryLocks{ListAdvisoryLocks: &storepb.ListAdvisoryLocks{Ino: held.GetIno(), Viewer: &storepb.Viewer{}}}
		result, err := client.Query(t.Context(), &storepb.Query{Query: list})
		for _, lock := range result.GetAdvisoryLocks() {
			if lock.GetOwner() == owner {
				request = lock
			}
		}
		return err == nil && request != nil
	}, testWait, time.Millisecond)
	return request, ended
}

func dropLocks(t *testing.T, client *session.Client, held *storepb.TakeLock, owner uint64) {
	t.Helper()
	op := &storepb.DropLocks{Ino: held.GetIno(), Kind: held.GetKind(), Owners: []uint64{owner}}
	_, err := client.Mutate(t.Context(), &storepb.Caller{}, &storepb.Op{Op: &storepb.Op_DropLocks{DropLocks: op}})
	require.NoError(t, err)
}

// TestAWaitWhoseOwnerDropsItsLocks has not lost its session.
func TestAWaitWhoseOwnerDropsItsLocks(t *testing.T) {
	client := openClient(t, startServers(t, 1)[0], "")
	held := takeFlock(t, client, "lock", 1)
	_, waits := startWaiting(t, client, held, 2)
	dropLocks(t, client, held, 2)
	require.Equal(t, storepb.Code_NOT_FOUND, (<-waits).GetCode())
}

// TestAnInterruptionEndsWithItsSession: in the next one its number is another request's.
func TestAnInterruptionEndsWithItsSession(t *testing.T) {
	client := openClient(t, startServers(t, 1)[0], "")
	held := takeFlock(t, client, "lock", 1)
	waiting, waits := startWaiting(t, client, held, 2)
	result, err := client.InterruptLock(&storepb.Caller{}, &storepb.AwaitLock{
		Session: waiting.GetSession() + 1, Seq: waiting.GetSeq(), Ino: held.GetIno(), Kind: held.GetKind(), Type: held.GetType(), Owner: 3,
	})
	require.NoError(t, err)
	require.Equal(t, storepb.Code_CANCELLED, result.GetCode())
	dropLocks(t, client, held, 1)
	require.Equal(t, storepb.Code_OK, (<-waits).GetCode())
}

// takeFlock makes a file and locks it.
func takeFlock(t *testing.T, client *session.Client, name string, owner uint64) *storepb.TakeLock {
	t.Helper()
	made, err := client.Mutate(t.Context(), &storepb.Caller{}, createOp(name))
	require.NoError(t, err)
	op := &storepb.TakeLock{
		Ino: made.GetAttr().GetIno(), Kind: storepb.LockKind_FLOCK, Type: storepb.LockType_EXCLUSIVE, Owner: owner,
	}
	result, err := client.Lock(t.Context(), &storepb.Caller{}, op)
	require.NoError(t, err)
	require.Equal(t, storepb.Code_OK, result.GetCode())
	return op
}
