package admin

import (
	"fmt"
	"time"

	"lockfs/cluster"
)

// CountVoters returns the number of voters.
func CountVoters(members []cluster.Member) (voters int) {
	for _, m := range members {
		if m.Voter {
			voters++
		}
	}
	return voters
}

// WarnOfVoters returns a warning for an unfavourable number of voters, or "".
func WarnOfVoters(voters int) string {
	switch {
	case voters == 0 || voters%2 == 1:
		return ""
	case voters == 2:
		return "2 voters are an even number: neither may fail. With 3 voters, one may fail."
	}
	return fmt.Sprintf("%d voters are an even number: they tolerate no more failures than %d", voters, voters-1)
}

func votersOf(nodes []cluster.NodeStatus) (voters int) {
	for _, node := range nodes {
		if node.Voter {
			voters++
		}
	}
	return voters
}

// States of a member.
const (
	voter    = "voter"
	nonvoter = "non-voter"
	joining  = "joining" // no vote yet
)

// deadAfter is the time without contact after which a member is shown as dead.
const deadAfter = 10 * time.Second

func stateOf(isVoter, isJoining bool) string {
	switch {
	case isVoter:
		return voter
	case isJoining:
		return joining
	}
	return nonvoter
}
