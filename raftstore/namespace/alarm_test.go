package namespace

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/storepb"
)

func TestAlarms(t *testing.T) {
	tr := newDriver(t)
	raise := func(kind, node, text string) step {
		return tr.do(0, opOf(&storepb.RaiseAlarm{Alarm: &storepb.Alarm{Kind: kind, Node: node, Name: "n" + node, Text: text}}))
	}
	require.Nil(t, tr.ns.Distrusted("a"))
	raise(AlarmStateDiffers, "a", "why").ok()
	number := tr.index
	raise(AlarmStateDiffers, "a", "again").ok()
	raise(AlarmStateUndecided, "", "who knows").ok()
	require.Equal(t, "why", tr.ns.Distrusted("a").GetText())
	require.Nil(t, tr.ns.Distrusted(""))
	raise("", "a", "").is(storepb.Code_INVALID)
	raise(AlarmStateDiffers, "b", strings.Repeat("x", maxAlarm)).is(storepb.Code_INVALID)

	listed := tr.ns.Query(&storepb.Query{Query: &storepb.Query_ListAlarms{ListAlarms: &storepb.ListAlarms{}}}).GetAlarms()
	require.Len(t, listed, 2)
	require.Equal(t, number, listed[0].GetNumber())
	again := restored(t, snapshotBytes(t, tr.ns.Snapshot()))
	require.Equal(t, "why", again.Distrusted("a").GetText())
	requireHash(t, again)

	tr.do(here, opOf(&storepb.ClearAlarm{Number: number})).ok()
	tr.do(here, opOf(&storepb.ClearAlarm{Number: number})).is(storepb.Code_NOT_FOUND)
	require.Nil(t, tr.ns.Distrusted("a"))
	var told []string
	for _, e := range tr.ns.Events(0, 100) {
		told = append(told, e.GetEvent()+" "+e.GetHost()+" "+e.GetReason()+" "+e.GetBy().GetHost())
	}
	require.Equal(t, []string{"alarm_raised na state_differs: why ", "alarm_raised n state_undecided: who knows ", "alarm_cleared na state_differs: why here"}, told)
	for i := range maxAlarms {
		raise(AlarmStateDiffers, nameOf(i), "")
	}
	raise(AlarmStateDiffers, "one more", "").is(storepb.Code_NO_SPACE)
}
