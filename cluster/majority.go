package cluster

// stateReply is what a voter says of its state after one command.
type stateReply struct {
	version  string // of its program: another one may hash the same state differently
	hash     string // by all that was in its memory
	expected string // what it should have been
}

// isSound tells whether a voter's memory was what it should have been.
func (r stateReply) isSound() bool { return r.hash == r.expected }

// comparisonResult is what the answers of the voters say together.
type comparisonResult struct {
	differs   map[string]bool // those whose state is not the majority's, by id
	undecided bool            // not all states are the same and sound, and none is the majority's
}

// compareStates compares the states of so many voters, of which some may not have answered. A state counts as the majority's if more
// than half of all voters have it, with one version of the program; those of another version are not judged by it.
func compareStates(voters int, answers map[string]stateReply) comparisonResult {
	having := make(map[stateReply]int)
	for _, answer := range answers {
		having[answer]++
	}
	for state, count := range having {
		if !state.isSound() || count*2 <= voters {
			continue
		}
		differs := make(map[string]bool)
		for id, answer := range answers {
			if answer.version == state.version && answer != state {
				differs[id] = true
			}
		}
		return comparisonResult{differs: differs}
	}
	versions := make(map[string]stateReply)
	for _, answer := range answers {
		if other, found := versions[answer.version]; !answer.isSound() || found && other != answer {
			return comparisonResult{undecided: true}
		}
		versions[answer.version] = answer
	}
	return comparisonResult{}
}
