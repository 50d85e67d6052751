package cluster

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"lockfs/cluster/consensus"
	"lockfs/cluster/consensus/fulldisk"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
	"lockfs/test/loopback"
)

// TestChangesGoOnWhileAServerIsDialed has a member that accepts connections and says nothing.
func TestChangesGoOnWhileAServerIsDialed(t *testing.T) {
	t.Parallel()
	leader := startNodes(t, 1)[0]
	listener, err := net.Listen("tcp", loopback.Free(t))
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	silent := &storepb.Member{Id: "silent-1", Name: "silent", Address: listener.Addr().String(), Nonvoter: true, OldestVersion: 1, NewestVersion: 2}
	self := leader.members.own()
	self.NewestVersion = 2
	require.True(t, leader.proposer.exclusive.Lock(t.Context())) // or it clears away the half of a member
	for _, member := range []*storepb.Member{silent, self} {
		result, err := leader.proposer.propose(t.Context(), setMember(member))
		require.NoError(t, err)
		requireDone(t, result)
	}
	require.NoError(t, consensus.Await(t.Context(), leader.raft.AddNonvoter("silent-1", raft.ServerAddress(silent.GetAddress()), 0, 0)))
	leader.proposer.exclusive.Unlock()
	raising := leader.versionUpgrader()
	members := *leader.members
	members.versions = firstAndSecond
	raising.members = &members
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		raising.tryUpgrade()
	}()
	conn, err := listener.Accept()
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	require.Eventually(t, func() bool { return leader.proposer.exclusive.TryLock() }, testWait, time.Millisecond)
	leader.proposer.exclusive.Unlock()
	select {
	case <-looked:
		t.Fatal("it does not wait for an answer")
	default:
	}
	<-looked
}

// TestTheWatchdogIsKickedWhileTheDiskIsFull has it tell of its disk, which it cannot write down.
func TestTheWatchdogIsKickedWhileTheDiskIsFull(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, "n0")
	cfg.MinFree = 1 << 20
	full := new(atomic.Bool)
	cfg.entries = func(log raft.LogStore) raft.LogStore { return fulldisk.Log{LogStore: log, Full: full} }
	node := startNode(t, cfg)
	require.Eventually(t, func() (limited bool) { // it has said what it has to say when it begins to lead
		node.fsm.View(func(ns *namespace.Namespace) { limited = ns.BytesLimited() })
		return limited
	}, testWait, time.Millisecond)
	require.NoError(t, node.CanStart())
	full.Store(true)
	defer full.Store(false)
	_ = node.raft.Barrier(0)
	require.Eventually(t, node.raft.IsFull, testWait, time.Millisecond)
	require.ErrorContains(t, node.CanStart(), "full")
	since := node.WatchdogDeadline()
	require.Eventually(t, func() bool { return node.WatchdogDeadline().After(since.Add(2 * consensus.LeaderDiskLimit)) }, testWait, 10*time.Millisecond)
	require.True(t, node.raft.IsFull())
}
