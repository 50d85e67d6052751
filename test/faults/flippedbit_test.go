package faults

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// TestFlippedBitIsFound has a bit flip in the memory of one of three servers, while contenders are at work on the others and on a mount:
// it ends, and again when it is started with the same data, and the others go on. With an empty data directory it comes back, and no
// alarm is raised any more. Nothing that was acknowledged is lost, and nobody meets another one.
func TestFlippedBitIsFound(t *testing.T) {
	c := testcluster.NewCluster(t)
	c.Program = testcluster.FaultyProgram(t)
	for range 3 {
		n := c.Add(t)
		n.Environment = []string{"LOCKFS_TEST_COMPARE_INTERVAL=1s"}
		if len(c.Nodes) == 3 {
			n.Environment = append(n.Environment, "LOCKFS_TEST_FAULT=flip-bit")
		}
		n.Start(t)
	}
	first, broken := c.Nodes[0], c.Nodes[2]
	guest := c.AddGuest(t, "m")
	guest.Start(t)
	contending := startContention(t, c, first.Host, c.Nodes[1].Host, guest.Host)
	contending.goesOn(t)
	first.Host.MustRun(t, "sh", "-c", "echo held > "+c.Path("held")) // the only content there is
	require.Error(t, broken.Server.Wait())
	require.Contains(t, broken.Server.Log(), "run `lockfs member remove "+broken.Name+"`")
	contending.goesOn(t)
	require.Equal(t, "held\n", first.Host.MustRun(t, "cat", c.Path("held")))
	alarm := onlyAlarm(t, first)
	require.Equal(t, "state_differs", alarm.Kind)
	require.Equal(t, broken.Name, alarm.Member)
	health, err := first.Get("/healthz")
	require.NoError(t, err)
	require.Regexp(t, "^200 ok(, insecure)?, with alarms\n", health)
	metrics, err := first.Get("/metrics")
	require.NoError(t, err)
	require.Contains(t, metrics, "\nlockfs_alarms 1\n")

	broken.Environment = nil
	broken.Launch()
	require.Error(t, broken.Server.Wait(), "it trusts its data again")
	_, err = first.Lockfs("member", "remove", broken.Name)
	require.NoError(t, err)
	broken.Host.MustRun(t, "rm", "-r", broken.Data)
	broken.Start(t)
	contending.goesOn(t)
	number, err := json.Marshal(alarm.Number)
	require.NoError(t, err)
	_, err = first.Lockfs("alarm", "clear", string(number))
	require.NoError(t, err)
	contending.finish(t)
	c.RequireSameState(t)
	events, err := first.Lockfs("events")
	require.NoError(t, err)
	require.Contains(t, events, "alarm_raised")
	require.Contains(t, events, "alarm_cleared")
}

type alarm struct {
	Number uint64 `json:"number"`
	Kind   string `json:"kind"`
	Member string `json:"member"`
}

func onlyAlarm(t testing.TB, n *testcluster.Node) alarm {
	t.Helper()
	var alarms []alarm
	hosts.Eventually(t, "an alarm", func() (string, bool) {
		list, err := n.Lockfs("alarm", "list", "--json")
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal([]byte(list), &alarms))
		return list, len(alarms) > 0
	})
	require.Len(t, alarms, 1)
	return alarms[0]
}
