package setup

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/cluster"
	"lockfs/cluster/health"
)

func TestWhetherAServerIsNeeded(t *testing.T) {
	dead := errors.New("dead")
	others := func(errs ...error) (nodes []cluster.NodeStatus) {
		for _, err := range errs {
			nodes = append(nodes, cluster.NodeStatus{Err: err})
		}
		return nodes
	}
	for _, enough := range [][]cluster.NodeStatus{others(nil), others(nil, nil), others(nil, nil, dead), others(nil, nil, nil, dead)} {
		require.NoError(t, enoughWithout(enough))
	}
	require.ErrorContains(t, enoughWithout(nil), "only server")
	for _, few := range [][]cluster.NodeStatus{others(dead), others(nil, dead), others(nil, dead, dead), others(nil, nil, dead, dead)} {
		require.ErrorContains(t, enoughWithout(few), "this server is needed")
	}
	require.Equal(t, "one server is left: it must not fail", describeRest(1))
	require.Equal(t, "2 servers are left: none of them may fail", describeRest(2))
	require.Equal(t, "4 servers are left, of which 1 may fail", describeRest(4))
}

// TestAServerIsNeededForTheQuorumOfTheOthers also while they elect a leader.
func TestAServerIsNeededForTheQuorumOfTheOthers(t *testing.T) {
	dead, unconfirmed := errors.New("dead"), errors.New("no answer in time")
	for name, test := range map[string]struct {
		others    []error // of the other voters
		confirmed error
		needed    bool
	}{
		"the others are a quorum":          {[]error{nil, nil}, nil, false},
		"one of three is down":             {[]error{nil, dead}, nil, true},
		"one of three is down, no leader":  {[]error{nil, dead}, unconfirmed, true},
		"the others are one, no leader":    {[]error{nil, nil}, unconfirmed, false},
		"of two servers":                   {[]error{nil}, nil, true},
		"there is no quorum":               {[]error{dead, dead}, unconfirmed, false},
		"two of five are down":             {[]error{nil, nil, dead, dead}, nil, true},
		"one of five is down":              {[]error{nil, nil, nil, dead}, nil, false},
		"the only server":                  {nil, nil, false},
		"two of four are down, no leader":  {[]error{nil, dead, dead}, unconfirmed, false},
		"two of four answer, and this one": {[]error{nil, nil, dead}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := []cluster.NodeStatus{{Name: "this", Voter: true}, {Name: "learner"}}
			voters := []health.Voter{{Name: "this"}}
			for _, err := range test.others {
				nodes = append(nodes, cluster.NodeStatus{Name: "other", Voter: true, Err: err})
				voter := health.Voter{Name: "other"}
				if err != nil {
					voter.Failure = err.Error()
				}
				voters = append(voters, voter)
			}
			err := neededForQuorum("this", health.Of(voters, test.confirmed), nodes)
			if test.needed {
				require.ErrorContains(t, err, "needed for a quorum")
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, test.others == nil, isOnlyVoter("this", nodes))
			require.NoError(t, neededForQuorum("learner", health.Of(voters, test.confirmed), nodes), "it has no vote")
		})
	}
}
