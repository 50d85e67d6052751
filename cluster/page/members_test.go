package page

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
	"lockfs/raftstore/storepb"
)

// TestWhatAMemberIsShownAs: who answers nothing is unreachable, with a vote or without; who has none is on its way to one, or to stay so.
func TestWhatAMemberIsShownAs(t *testing.T) {
	known := &clusterpb.StatusReply{
		Voters: []string{"a-1", "b-1", "c-1"},
		Members: []*storepb.Member{
			{Id: "f-1", Name: "f", Nonvoter: true},
			{Id: "a-1", Name: "a"},
			{Id: "b-1", Name: "b", Nonvoter: true},
			{Id: "c-1", Name: "c"},
			{Id: "d-1", Name: "d"},
			{Id: "e-1", Name: "e", Nonvoter: true},
			{Id: "g-1", Name: "g"},
		},
	}
	gone, follower := errors.New("it does not answer"), &clusterpb.StatusReply{State: "follower"}
	replies := []*clusterpb.StatusReply{nil, {State: "leader"}, follower, nil, follower, follower, nil}
	failures := []error{gone, nil, nil, gone, nil, nil, gone}
	shown := make(map[string]string)
	for _, m := range describeMembers(known, replies, failures, replies[1]) {
		shown[m.Name] = m.State
		require.Equal(t, m.State == "unreachable", m.Error != "", m.Name)
	}
	require.Equal(t, map[string]string{
		"a": "leader", "b": "follower", "c": "unreachable", "d": "joining", "e": "non-voter", "f": "unreachable", "g": "unreachable",
	}, shown)
}
