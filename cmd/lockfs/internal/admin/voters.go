package admin

import (
	"fmt"
	"lockfs/cluster"
)

// CountVoters counts those that have a vote.
func CountVoters(members []cluster.Member) (voters int) {
	for _, m := range members {
		if m.Voter {
			voters++
		}
	}
	return voters
}

// WarnOfVoters says what is wrong with a number of voters, or nothing.
func WarnOfVoters(voters int) string {
	switch {
	case voters == 0 || voters%2 == 1:
		return ""
	case voters == 2:
		return "2 voters are an even number: neither may fail. Three survive the loss of one."
	}
	return fmt.Sprintf("%d voters are an even number: they survive the loss of no more than %d do", voters, voters-1)
}

func votersOf(nodes []cluster.NodeStatus) (voters int) {
	for _, node := range nodes {
		if node.Voter {
			voters++
		}
	}
	return voters
}
