package admin

import "time"

// The states of a member.
const (
	voter    = "voter"
	nonvoter = "non-voter"
	joining  = "joining" // it has no vote yet
)

// deadAfter is how long a member is silent that is shown as dead.
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
