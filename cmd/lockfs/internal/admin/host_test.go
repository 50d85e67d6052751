package admin

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
