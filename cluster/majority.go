package cluster

// stateReply has a voter's hashes of its state after one command.
type stateReply struct {
	version  string // of its program: another one may hash the same state differently
	hash     string // of its whole memory
	expected string // maintained incrementally
}

// isSound reports whether a voter's memory is as expected.
func (r stateReply) isSound() bool { return r.hash == r.expected }

// comparisonResult is the result of the voters' replies together.
type comparisonResult struct {
	differs   map[string]bool // voters with another state than the majority, by id
	undecided bool            // states differ or are unsound, and no majority agrees
}

// compareStates compares the replies of the voters; some may be missing. More than half of all voters,
// with one version of the program, are a majority. It says nothing about voters of another version.
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
