package cluster

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"lockfs/cluster/consensus/fulldisk"
	"lockfs/cluster/session"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// TestAVoterWithoutSpaceRaisesAnAlarm has one of three voters want more than any disk has, and be removed
// in the end.
func TestAVoterWithoutSpaceRaisesAnAlarm(t *testing.T) {
	t.Parallel()
	first := startNode(t, testConfig(t, "n0"))
	client, err := first.OpenClient(t.Context(), session.Config{Host: "h", Logger: quietLogger()})
	require.NoError(t, err)
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = client.Close(ctx)
	}()
	require.Equal(t, storepb.Code_OK, create(t, client, "before"))
	startNode(t, testConfig(t, "n1", first.cfg.Address))
	greedy := testConfig(t, "n2", first.cfg.Address)
	greedy.MinFree = 1 << 60
	node := startNode(t, greedy)
	alarms := func() []*storepb.Alarm { return alarmsOf(first) }
	require.Eventually(t, func() bool { return len(alarms()) == 1 }, testWait, 10*time.Millisecond)
	require.Equal(t, namespace.AlarmNoSpace, alarms()[0].GetKind())
	require.Equal(t, node.dir.ID, alarms()[0].GetNode())
	require.Equal(t, storepb.Code_NO_SPACE, create(t, client, "meanwhile"))

	admin, err := NewAdmin([]string{first.cfg.Address}, nil)
	require.NoError(t, err)
	defer admin.Close()
	require.NoError(t, admin.Remove(t.Context(), "n2", false))
	require.Eventually(t, func() bool { return len(alarms()) == 0 }, testWait, 10*time.Millisecond)
	require.Equal(t, storepb.Code_OK, create(t, client, "after"))
}

func TestAnAlarmIsNotClearedForAMoment(t *testing.T) {
	require.True(t, spaceReport{free: 99, min: 100}.isShort())
	for _, free := range []uint64{100, 124} {
		require.False(t, spaceReport{free: free, min: 100}.isShort())
		require.False(t, spaceReport{free: free, min: 100}.hasEnough())
	}
	require.True(t, spaceReport{free: 125, min: 100}.hasEnough())
	require.False(t, spaceReport{}.isShort(), "who does not look is never short")
	require.True(t, spaceReport{}.hasEnough())
}

// TestTheMountOfAFullServerGoesOn fills the disk of the leader, and then that of whoever leads then:
// those who mount through it go on by others.
func TestTheMountOfAFullServerGoesOn(t *testing.T) {
	t.Parallel()
	full := make(map[*Node]*atomic.Bool)
	var nodes []*Node
	for _, name := range []string{"n0", "n1", "n2"} {
		var join []string
		if len(nodes) > 0 {
			join = []string{nodes[0].cfg.Address}
		}
		cfg := testConfig(t, name, join...)
		cfg.MinFree = 1 << 20
		is := new(atomic.Bool)
		cfg.entries = func(log raft.LogStore) raft.LogStore { return fulldisk.Log{LogStore: log, Full: is} }
		node := startNode(t, cfg)
		nodes, full[node] = append(nodes, node), is
	}
	for _, name := range []string{"first", "second"} {
		leader := leaderOf(t, nodes)
		others := slices.DeleteFunc(slices.Clone(nodes), func(n *Node) bool { return n == leader })
		client, err := leader.OpenClient(t.Context(), session.Config{Host: leader.cfg.Name, Logger: quietLogger()})
		require.NoError(t, err)
		require.Equal(t, storepb.Code_OK, create(t, client, name))
		full[leader].Store(true)
		result, err := client.Mutate(t.Context(), &storepb.Caller{}, &storepb.Op{Op: &storepb.Op_Unlink{
			Unlink: &storepb.Unlink{Parent: namespace.RootIno, Name: []byte(name)},
		}})
		require.NoError(t, err)
		require.Equal(t, storepb.Code_OK, result.GetCode())
		require.Equal(t, storepb.Code_NOT_FOUND, lookup(t, client, name))
		tries := 0
		require.Eventually(t, func() bool {
			tries++
			return create(t, client, fmt.Sprintf("%s %d", name, tries)) == storepb.Code_NO_SPACE
		}, testWait, 10*time.Millisecond)
		alarms := alarmsOf(leaderOf(t, others))
		require.Len(t, alarms, 1)
		require.Equal(t, leader.dir.ID, alarms[0].GetNode())

		full[leader].Store(false)
		require.Eventually(t, func() bool { return create(t, client, name+" after") == storepb.Code_OK }, testWait, 10*time.Millisecond)
		require.NoError(t, client.Close(t.Context()))
	}
}
