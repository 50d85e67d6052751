package cluster

// stateAnswer is what a voter says of its state after one command.
type stateAnswer struct {
	version string // of its program: another one may hash the same state differently
	hash    string // by all that was in its memory
	kept    string // what it should have been
}

// isSound tells whether a voter's memory was what it should have been.
func (a stateAnswer) isSound() bool { return a.hash == a.kept }

// stateVerdict is what the answers of the voters say together.
type stateVerdict struct {
	differs   map[string]bool // those whose state is not the majority's, by id
	undecided bool            // not all states are the same and sound, and none is the majority's
}

// judgeStates compares the states of so many voters, of which some may not have answered. A state counts as the majority's if more
// than half of all voters have it, with one version of the program; those of another version are not judged by it.
func judgeStates(voters int, answers map[string]stateAnswer) stateVerdict {
	having := make(map[stateAnswer]int)
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
		return stateVerdict{differs: differs}
	}
	versions := make(map[string]stateAnswer)
	for _, answer := range answers {
		if other, found := versions[answer.version]; !answer.isSound() || found && other != answer {
			return stateVerdict{undecided: true}
		}
		versions[answer.version] = answer
	}
	return stateVerdict{}
}
