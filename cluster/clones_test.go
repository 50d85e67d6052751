package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/session"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// TestCloneOfAMountedHostIsRefused has another boot of the machine of a live mount come.
func TestCloneOfAMountedHostIsRefused(t *testing.T) {
	t.Parallel()
	node := startNodes(t, 1)[0]
	client := openTestClient(t, node, "")
	machine := ""
	node.fsm.View(func(ns *namespace.Namespace) {
		for _, host := range ns.Query(&storepb.Query{Query: &storepb.Query_ListHosts{ListHosts: &storepb.ListHosts{}}}).GetHosts() {
			machine = host.GetMachine()
		}
	})
	open := &storepb.Op{Op: &storepb.Op_OpenSession{OpenSession: &storepb.OpenSession{Host: "h", BootId: "the-clone", Machine: machine, Started: 1}}}
	require.Equal(t, storepb.Code_BUSY, execute(t, node, &storepb.Command{Session: 77, Op: open}))
	require.Eventually(t, func() (raised bool) {
		node.fsm.View(func(ns *namespace.Namespace) { raised = ns.HasAlarm(namespace.AlarmTwoHosts, "h") })
		return raised
	}, testWait, 10*time.Millisecond)
	require.Equal(t, storepb.Code_OK, create(t, client, "lock"))
}

// TestCrashedHostRaisesNoAlarm has a machine boot again before its session has ended.
func TestCrashedHostRaisesNoAlarm(t *testing.T) {
	t.Parallel()
	node := startNodes(t, 1)[0]
	open := func(session uint64, boot string) storepb.Code {
		op := &storepb.Op{Op: &storepb.Op_OpenSession{OpenSession: &storepb.OpenSession{Host: "h", BootId: boot, Started: 1}}}
		return execute(t, node, &storepb.Command{Session: session, Op: op})
	}
	require.Equal(t, storepb.Code_OK, open(76, "before"))
	require.Equal(t, storepb.Code_BUSY, open(77, "after"))
	require.Eventually(t, func() bool { return open(77, "after") == storepb.Code_OK }, testWait, 50*time.Millisecond)
	node.fsm.View(func(ns *namespace.Namespace) { require.Empty(t, ns.Alarms()) })
}

// TestBootAfterAGoodbyeWaitsForTheTerm has the leader say for how long a machine has to be silent,
// whatever the mount says.
func TestBootAfterAGoodbyeWaitsForTheTerm(t *testing.T) {
	t.Parallel()
	node := startNodes(t, 1)[0]
	client, err := node.OpenClient(t.Context(), session.Config{Host: "h", OpTimeout: testWait, Logger: quietLogger()})
	require.NoError(t, err)
	take := createOp("lock")
	take.GetCreate().Content = []byte("1")
	take.GetCreate().Facts = &storepb.Facts{
		Format: storepb.Format_BEADS, Holder: "1", Host: "h", Guard: storepb.Guard_HOST, Process: &storepb.Process{Pid: 1, BootId: "before", Start: 1},
	}
	result, err := client.Mutate(t.Context(), &storepb.Caller{Host: "h"}, take)
	require.NoError(t, err)
	require.Equal(t, storepb.Code_OK, result.GetCode(), result.GetMessage())
	machine := ""
	node.fsm.View(func(ns *namespace.Namespace) {
		for _, host := range ns.Query(&storepb.Query{Query: &storepb.Query_ListHosts{ListHosts: &storepb.ListHosts{}}}).GetHosts() {
			machine = host.GetMachine()
		}
	})
	require.NoError(t, client.Close(t.Context()))
	left := time.Now()
	open := func() storepb.Code {
		op := &storepb.Op{Op: &storepb.Op_OpenSession{OpenSession: &storepb.OpenSession{Host: "h", BootId: "after", Machine: machine, Started: 1, Silence: 1}}}
		return execute(t, node, &storepb.Command{Session: 77, Op: op})
	}
	require.Equal(t, storepb.Code_BUSY, open())
	require.Eventually(t, func() bool { return open() == storepb.Code_OK }, testWait, 50*time.Millisecond)
	require.Greater(t, time.Since(left), node.cfg.SessionTTL/2)
}
