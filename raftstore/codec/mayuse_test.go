package codec

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"lockfs/raftstore/storepb"
)

// laterPlan is of commands as if a later version had added something to them.
func laterPlan(t *testing.T, added ...protoreflect.FullName) *messagePlan {
	known, before := plans, maps.Clone(since)
	plans = make(map[protoreflect.FullName]*messagePlan)
	for _, name := range added {
		since[name] = 2
	}
	t.Cleanup(func() {
		plans = known
		since = before
	})
	return planOf(new(storepb.Command).ProtoReflect().Descriptor())
}

// TestNothingIsProposedBeforeItsVersion has an operation, a field at some depth and a value that the second version has added.
func TestNothingIsProposedBeforeItsVersion(t *testing.T) {
	tick := &storepb.Command{Op: &storepb.Op{Op: &storepb.Op_Tick{Tick: &storepb.Tick{}}}}
	create := func(facts *storepb.Facts) *storepb.Command {
		return &storepb.Command{Op: &storepb.Op{Op: &storepb.Op_Create{Create: &storepb.Create{Parent: 1, Facts: facts}}}}
	}
	for _, c := range []struct {
		added      protoreflect.FullName
		has, hasNo *storepb.Command
	}{
		{"lockfs.store.Op.tick", tick, create(nil)},
		{"lockfs.store.Facts.tag", create(&storepb.Facts{Tag: "t"}), create(&storepb.Facts{Host: "h"})},
		{"lockfs.store.PID", create(&storepb.Facts{Format: storepb.Format_PID}), create(&storepb.Facts{Format: storepb.Format_TOWER})},
	} {
		t.Run(string(c.added), func(t *testing.T) {
			plan := laterPlan(t, c.added)
			check := func(cmd *storepb.Command, of uint32) error {
				data, err := proto.Marshal(cmd)
				require.NoError(t, err)
				return plan.checkVersion(data, of)
			}
			require.ErrorIs(t, check(c.has, 1), ErrNotYet)
			require.ErrorContains(t, check(c.has, 1), "of version 2, and the cluster runs at version 1")
			require.NoError(t, check(c.has, 2))
			require.NoError(t, check(c.hasNo, 1))
		})
	}
}

// TestWhatWasAddedIsThere keeps names without a field or value out of the table, where they would hold nothing back.
func TestWhatWasAddedIsThere(t *testing.T) {
	file := storepb.File_raftstore_storepb_store_proto
	names := make(map[protoreflect.FullName]bool)
	for i := range file.Messages().Len() {
		for j := range file.Messages().Get(i).Fields().Len() {
			names[file.Messages().Get(i).Fields().Get(j).FullName()] = true
		}
	}
	for i := range file.Enums().Len() {
		for j := range file.Enums().Get(i).Values().Len() {
			names[file.Enums().Get(i).Values().Get(j).FullName()] = true
		}
	}
	require.True(t, names["lockfs.store.Op.tick"])
	require.True(t, names["lockfs.store.PID"])
	for name := range since {
		require.True(t, names[name], name)
	}
}
