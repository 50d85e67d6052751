package cluster

import (
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// flip changes a bit of a file's content in a node's memory, which nobody else uses now.
func flip(t *testing.T, node *Node, ino uint64) {
	t.Helper()
	node.fsm.View(func(ns *namespace.Namespace) {
		result := ns.Query(&storepb.Query{Query: &storepb.Query_Read{Read: &storepb.Read{Ino: ino}}})
		require.NotEmpty(t, result.GetContent())
		result.GetContent()[0] ^= 1
	})
}

// heldLock makes a lock that all nodes know.
func heldLock(t *testing.T, nodes []*Node) (ino uint64) {
	t.Helper()
	client := openTestClient(t, nodes[0], "")
	op := createOp("held")
	op.GetCreate().Content = []byte("held")
	made, err := client.Mutate(t.Context(), &storepb.Caller{}, op)
	require.NoError(t, err)
	require.Equal(t, storepb.Code_OK, made.GetCode())
	ino = made.GetAttr().GetIno()
	for _, node := range nodes {
		requireEventually(t, node, func(ns *namespace.Namespace) bool { return ns.Index() >= ids.Index(made.GetAttr().GetVersion()) })
	}
	return ino
}

func requireEventually(t *testing.T, node *Node, holds func(*namespace.Namespace) bool) {
	t.Helper()
	require.NoError(t, node.fsm.WaitFor(t.Context(), holds))
}

func alarmsOf(node *Node) (alarms []*storepb.Alarm) {
	node.fsm.View(func(ns *namespace.Namespace) { alarms = ns.Alarms() })
	return alarms
}

func compareNow(t *testing.T, nodes []*Node) (leader *Node) {
	t.Helper()
	leader = leaderOf(t, nodes)
	leader.comparison().compare(leader.leadership.term())
	return leader
}

// TestFlippedBitTakesVoterOut of service, a follower and then, in another cluster, the leader; and
// whenever it is started again.
func TestFlippedBitTakesVoterOut(t *testing.T) {
	t.Parallel()
	for name, leads := range map[string]bool{"follower": false, "leader": true} {
		t.Run(name, func(t *testing.T) {
			nodes := startNodes(t, 3)
			ino := heldLock(t, nodes)
			leader := compareNow(t, nodes)
			require.Empty(t, alarmsOf(leader))
			i := slices.IndexFunc(nodes, func(n *Node) bool { return (n == leader) == leads })
			broken := nodes[i]
			others := slices.Delete(slices.Clone(nodes), i, i+1)
			flip(t, broken, ino)
			compareNow(t, nodes)
			distrusted := new(raftstore.DistrustedError)
			require.ErrorAs(t, <-broken.Failed(), &distrusted)
			require.ErrorContains(t, distrusted, "`lockfs member remove "+broken.cfg.Name+"`")
			_, err := broken.fsm.Query(statFs.GetQuery())
			require.ErrorAs(t, err, &distrusted)
			require.NoError(t, broken.Close())

			client := openTestClient(t, leaderOf(t, others), "")
			require.Equal(t, storepb.Code_OK, create(t, client, "after"))
			for _, node := range others {
				requireEventually(t, node, func(ns *namespace.Namespace) bool { return len(ns.Alarms()) == 1 })
				require.Equal(t, broken.dir.ID, alarmsOf(node)[0].GetNode())
				require.Equal(t, namespace.AlarmStateDiffers, alarmsOf(node)[0].GetKind())
			}
			next := leaderOf(t, others)
			impatient := next.comparison()
			impatient.interval = 0 // one of the voters does not answer any more
			impatient.compare(next.leadership.term())
			require.Len(t, alarmsOf(others[0]), 1)

			cfg := broken.cfg
			cfg.Metrics = nil
			back, err := Open(cfg)
			require.NoError(t, err)
			defer func() { require.NoError(t, back.Close()) }()
			require.ErrorAs(t, <-back.Failed(), &distrusted)
		})
	}
}

// TestFlippedBitOfTwo raises an alarm alone: nobody knows who is right. An administrator clears it.
func TestFlippedBitOfTwo(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 2)
	flip(t, nodes[1], heldLock(t, nodes))
	leader := compareNow(t, nodes)
	for _, node := range nodes {
		requireEventually(t, node, func(ns *namespace.Namespace) bool { return len(ns.Alarms()) == 1 })
		require.Equal(t, namespace.AlarmStateUndecided, alarmsOf(node)[0].GetKind())
		answer := httptest.NewRecorder()
		node.healthz(answer, httptest.NewRequestWithContext(t.Context(), "GET", "/healthz", nil))
		require.Equal(t, 200, answer.Code)
		require.Contains(t, answer.Body.String(), "ok, insecure, with alarms\nalarm ")
	}
	admin, err := NewAdmin([]string{leader.cfg.Address}, nil)
	require.NoError(t, err)
	defer admin.Close()
	clearAlarm := func(number uint64) error {
		return admin.Change(t.Context(), &storepb.Caller{Host: "h", Uid: 7}, &storepb.Op{Op: &storepb.Op_ClearAlarm{
			ClearAlarm: &storepb.ClearAlarm{Number: number},
		}})
	}
	number := alarmsOf(leader)[0].GetNumber()
	require.NoError(t, clearAlarm(number))
	require.ErrorContains(t, clearAlarm(number), "there is no alarm")
	require.Empty(t, alarmsOf(leader))
	var told []string
	leader.fsm.View(func(ns *namespace.Namespace) {
		for _, e := range ns.Events(0, 100) {
			told = append(told, e.GetEvent())
		}
	})
	require.Subset(t, told, []string{"alarm_raised", "alarm_cleared"})
}
