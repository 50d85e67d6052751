package admin

import "time"

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
