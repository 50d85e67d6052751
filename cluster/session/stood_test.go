package session_test

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
	"lockfs/formats/tower"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// TestALockOfAHostThatStoodStillIsNotStale: how wrong its clock is by now is measured with the session in which the lock is written.
func TestALockOfAHostThatStoodStillIsNotStale(t *testing.T) {
	node := startServers(t, 1)[0]
	client := openClient(t, node, "")
	require.NotZero(t, client.Session())
	require.Eventually(t, func() bool { return client.Status().GetLeader() != "" }, testWait, 10*time.Millisecond, "a keepalive")
	made, err := client.Mutate(t.Context(), &storepb.Caller{}, createOp("x.lock"))
	require.NoError(t, err)
	client.StandStill(t, time.Hour, func(id ids.Session) {
		require.Eventually(t, func() bool {
			return !slices.ContainsFunc(node.sessions(t), func(s *clusterpb.Session) bool { return s.GetRecord().GetId() == uint64(id) })
		}, testWait, 50*time.Millisecond)
	})

	now := time.Now().UTC()
	lock := tower.Lock{
		LockVersion: tower.Version, LockName: "x", RequestID: "req_1", Actor: "a", Intent: "i", IntentVersion: "1", HostID: "h",
		PID: os.Getpid(), CreatedAt: now, LastHeartbeatAt: now, TTLSeconds: 60,
	}
	content, err := lock.Render()
	require.NoError(t, err)
	written, err := client.Mutate(t.Context(), &storepb.Caller{Pid: uint32(os.Getpid())}, &storepb.Op{Op: &storepb.Op_SetContent{
		SetContent: &storepb.SetContent{Ino: made.GetAttr().GetIno(), IfVersion: made.GetAttr().GetVersion(), Content: content},
	}})
	require.NoError(t, err)
	require.Equal(t, storepb.Code_OK, written.GetCode())
	found, err := client.Query(t.Context(), &storepb.Query{Query: &storepb.Query_GetLock{
		GetLock: &storepb.GetLock{Parent: uint64(namespace.RootIno), Name: []byte("x.lock")},
	}})
	require.NoError(t, err)
	require.Len(t, found.GetLocks(), 1)
	require.Equal(t, "held", found.GetLocks()[0].GetState(), "%v", found)
	require.WithinDuration(t, now.Add(time.Minute), time.Unix(0, found.GetLocks()[0].GetFacts().GetExpiresAt()), 10*time.Second)
}
