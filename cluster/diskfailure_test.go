package cluster

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"lockfs/cluster/consensus"
	"lockfs/cluster/rpc"
	"lockfs/cluster/session"
	"lockfs/raftstore/storepb"
)

// hangingLog stores nothing while it hangs.
type hangingLog struct {
	raft.LogStore
	hangs *atomic.Pointer[chan struct{}] // closed when it goes on
}

func (l hangingLog) StoreLogs(entries []*raft.Log) error {
	if goOn := l.hangs.Load(); goOn != nil {
		<-*goOn
	}
	return l.LogStore.StoreLogs(entries)
}

// TestALeaderWhoseDiskHangsIsSucceeded has an operation under way when the leader's disk hangs. It is
// done within its time, and nobody hears of the old leader any more.
func TestALeaderWhoseDiskHangsIsSucceeded(t *testing.T) {
	t.Parallel()
	require.Less(t, consensus.LeaderDiskLimit, session.DefaultOpTimeout/2, "an operation has time to be done by another leader")
	hangs := make(map[string]*atomic.Pointer[chan struct{}])
	var nodes []*Node
	for _, name := range []string{"n0", "n1", "n2"} {
		var join []string
		if len(nodes) > 0 {
			join = []string{nodes[0].cfg.Address}
		}
		cfg := testConfig(t, name, join...)
		hang := new(atomic.Pointer[chan struct{}])
		cfg.entries = func(log raft.LogStore) raft.LogStore { return hangingLog{log, hang} }
		hangs[name] = hang
		nodes = append(nodes, startNode(t, cfg))
	}
	leader := leaderOf(t, nodes)
	others := slices.DeleteFunc(nodes, func(n *Node) bool { return n == leader })
	client, err := others[0].OpenClient(t.Context(), session.Config{Host: "h", Logger: quietLogger()})
	require.NoError(t, err)
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = client.Close(ctx)
	}()
	require.Equal(t, storepb.Code_OK, create(t, client, "before"))
	goOn := make(chan struct{})
	hangs[leader.cfg.Name].Store(&goOn)
	defer close(goOn)
	require.Equal(t, storepb.Code_OK, create(t, client, "lock"))
	require.Equal(t, storepb.Code_OK, lookup(t, client, "before"))
	select {
	case err := <-leader.Failed():
		require.ErrorContains(t, err, "the disk has not answered")
	case <-time.After(testWait):
		t.Fatal("the process goes on")
	}
	require.NotSame(t, leader, leaderOf(t, others))
	require.Zero(t, leader.leadership.term())
	require.Eventually(t, func() bool { return others[0].readIndex.probeTerm(leader.members.own(), rpc.ProbeTimeout).term == 0 }, testWait, 10*time.Millisecond)
}
