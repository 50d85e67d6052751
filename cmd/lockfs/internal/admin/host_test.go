package admin

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/lockjson"
	"lockfs/raftstore/storepb"
)

func TestDescribeHost(t *testing.T) {
	for state, h := range map[string]*storepb.HostRecord{
		"reachable":   {Sessions: 1, Left: true},
		"left":        {Left: true},
		"unreachable": {},
	} {
		require.Equal(t, state, describeHost(h).State)
	}
}

// TestLocksOfHosts: a name counts once for each host that holds it, by its content or by a flock or fcntl lock.
func TestLocksOfHosts(t *testing.T) {
	on := func(host, state string) lockjson.Advisory { return lockjson.Advisory{Host: host, State: state} }
	require.Equal(t, map[string]int{"a": 2, "b": 2}, locksByHost([]lockjson.Lock{
		{State: "held", Host: "a", Advisory: []lockjson.Advisory{on("a", lockjson.AdvisoryHeld), on("b", lockjson.AdvisoryDelayed)}},
		{State: "unreachable", Host: "a"}, {State: "stale", Host: "a"}, {},
		{State: "held", Advisory: []lockjson.Advisory{on("b", lockjson.AdvisoryHeld), on("a", lockjson.AdvisoryWaiting)}},
	}))
}

func TestReportForgotten(t *testing.T) {
	event := func(time int64, event, host, path string) *storepb.Event {
		return &storepb.Event{Time: time, Event: event, Host: host, Path: []byte(path)}
	}
	events := []*storepb.Event{
		event(10, "host_forgotten", "m", ""), event(10, "lock_stale", "m", "earlier"),
		event(20, "host_forgotten", "m", ""),
		event(20, "lock_stale", "m", "removed"), event(20, "lock_removed", "m", "removed"),
		event(20, "lock_stale", "m", "kept"),
		event(20, "lock_stale", "other", "another"),
		event(21, "lock_stale", "m", "later"),
	}
	report, err := reportForgotten(t.Context(), func(context.Context, *storepb.Query) (*storepb.Result, error) {
		return &storepb.Result{Events: events}, nil
	}, "m")
	require.NoError(t, err)
	require.Equal(t, &forgotten{Host: "m", Stale: []string{"kept"}, Removed: []string{"removed"}}, report)

	var b strings.Builder
	require.NoError(t, report.print(&b))
	require.Equal(t, "forgot m (locks of its processes: 1 removed, 1 stale)\nremoved  removed\nstale    kept\n", b.String())
}
