package cluster

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/session"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// TestAVoterWithoutSpaceRaisesAnAlarm has one of three voters want more than any disk has, and be removed in the end.
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
	require.NoError(t, admin.Remove(t.Context(), "n2"))
	require.Eventually(t, func() bool { return len(alarms()) == 0 }, testWait, 10*time.Millisecond)
	require.Equal(t, storepb.Code_OK, create(t, client, "after"))
}

func TestAnAlarmIsNotClearedForAMoment(t *testing.T) {
	require.True(t, spaceTold{free: 99, min: 100}.isShort())
	for _, free := range []uint64{100, 124} {
		require.False(t, spaceTold{free: free, min: 100}.isShort())
		require.False(t, spaceTold{free: free, min: 100}.hasEnough())
	}
	require.True(t, spaceTold{free: 125, min: 100}.hasEnough())
	require.False(t, spaceTold{}.isShort(), "who does not look is never short")
	require.True(t, spaceTold{}.hasEnough())
}
