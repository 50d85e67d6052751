package page

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/lockjson"
	"lockfs/raftstore/storepb"
)

func TestATimelineShowsHoldersAndWaiters(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	after := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	d := &LockDetail{History: []lockjson.Event{
		{Event: "lock_acquired", Timestamp: after(0), Token: 1, Holder: "w1", Host: "a"},
		{Event: "removal_refused", Timestamp: after(20), By: &lockjson.Caller{Host: "b", PID: 9}, Reason: "it is live"},
		{Event: "lock_stale", Timestamp: after(40), Token: 1},
		{Event: "lock_stolen", Timestamp: after(60), Token: 2, Holder: "w2", Host: "b", Reason: "it was stale"},
		{Event: "lock_removed", Timestamp: after(80), Token: 2, Reason: "by force"},
		{Event: "lock_acquired", Timestamp: after(90), Token: 3, Holder: "w1", Host: "a"},
	}, Queue: []lockjson.Advisory{{State: lockjson.AdvisoryWaiting, Host: "c", PID: 4, Age: 10}}}
	drawn := drawTimeline(d, nil, moment(after(100).UnixNano()))
	var labels []string
	for _, lane := range drawn.Lanes {
		labels = append(labels, lane.Label)
	}
	require.ElementsMatch(t, []string{"w1 on a", "w2 on b", "pid 9 on b", "pid 4 on c"}, labels)
	type bar struct {
		kind     string
		from, to int
	}
	at := func(x int) int {
		return int(float64(x-timelineLeft)/(timelineWidth-timelineLeft-timelineRight)*100 + .5)
	}
	var bars []bar
	for _, b := range drawn.Bars {
		bars = append(bars, bar{b.Kind, at(b.X), at(b.X + b.Width)})
	}
	require.ElementsMatch(t, []bar{{"held", 0, 40}, {"stale", 40, 60}, {"held", 60, 80}, {"held", 90, 100}, {"waits", 90, 100}}, bars)
	var marks []string
	for _, m := range drawn.Marks {
		marks = append(marks, m.Kind)
	}
	require.ElementsMatch(t, []string{"stolen", "removed", "refused"}, marks)
	require.Nil(t, drawTimeline(new(LockDetail), nil, 1))
}

// TestAnUnreachableHolderIsNotDrawnAsHeld, neither now nor in earlier absences of its host. A lock with an expiry
// does not depend on its host.
func TestAnUnreachableHolderIsNotDrawnAsHeld(t *testing.T) {
	at := func(s int) moment { return moment(time.Duration(s) * time.Second) }
	event := func(s int, kind, format, host string) lockjson.Event {
		return lockjson.Event{Event: kind, Timestamp: time.Unix(int64(s), 0), Format: format, PID: 7, Host: host}
	}
	absences := absencesIn([]*storepb.Event{
		{Event: "host_unreachable", Time: int64(at(80)), Host: "a"},
		{Event: "host_back", Time: int64(at(30)), Host: "a"},
		{Event: "host_unreachable", Time: int64(at(25)), Host: "b"},
		{Event: "host_unreachable", Time: int64(at(20)), Host: "a"},
		{Event: "host_back", Time: int64(at(5)), Host: "a"},
	})
	require.Equal(t, []absence{{"a", at(20), at(30)}, {"b", at(25), math.MaxInt64}, {"a", at(80), math.MaxInt64}}, absences)

	drawn := func(d *LockDetail) (bars []string) {
		place := func(x int) int {
			return int(float64(x-timelineLeft)/(timelineWidth-timelineLeft-timelineRight)*100 + .5)
		}
		for _, b := range drawTimeline(d, absences, at(100)).Bars {
			bars = append(bars, fmt.Sprint(b.Kind, " ", place(b.X), "-", place(b.X+b.Width)))
		}
		return bars
	}
	unreachable := &LockDetail{Lock: Lock{State: "unreachable"}, Since: at(80), History: []lockjson.Event{event(0, "lock_acquired", "pid", "a")}}
	require.Equal(t, []string{"held 0-20", "unreachable 20-30", "held 30-80", "unreachable 80-100"}, drawn(unreachable))
	stale := &LockDetail{Lock: Lock{State: "stale"}, History: []lockjson.Event{event(0, "lock_acquired", "pid", "b"), event(60, "lock_stale", "pid", "b")}}
	require.ElementsMatch(t, []string{"held 0-25", "unreachable 25-60", "stale 60-100"}, drawn(stale))
	timed := &LockDetail{Lock: Lock{State: "held"}, History: []lockjson.Event{event(0, "lock_acquired", "tower", "a")}}
	require.Equal(t, []string{"held 0-100"}, drawn(timed))
	delayed := &LockDetail{Queue: []lockjson.Advisory{{State: lockjson.AdvisoryDelayed, Age: 100}}}
	require.Equal(t, []string{"unreachable 0-100"}, drawn(delayed))
}

func TestManyHoldersShareTheLastLane(t *testing.T) {
	d := new(LockDetail)
	for i := range 3 * mostLanes {
		d.History = append(d.History, lockjson.Event{Event: "lock_acquired", Timestamp: time.Unix(int64(i), 0), PID: uint32(i + 1)})
	}
	drawn := drawTimeline(d, nil, moment(100e9))
	require.Len(t, drawn.Lanes, mostLanes)
	require.Equal(t, "others", drawn.Lanes[mostLanes-1].Label)
}

func TestWordsAreForAShell(t *testing.T) {
	for text, want := range map[string]string{
		"a/b.lock": "a/b.lock", "": "''", "it's": `'it'\''s'`, "a b": "'a b'", "$(x)": "'$(x)'", "a\nb": `$'a\nb'`, "é'\x01": `$'\u00e9\'\x01'`,
	} {
		require.Equal(t, want, word(text))
	}
}
