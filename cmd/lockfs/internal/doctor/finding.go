package doctor

import "fmt"

// State is how well something is.
type State string

// The states. Unknown is what could not be looked at; it is no reason to worry by itself.
const (
	OK      State = "ok"
	Warning State = "warning"
	Failed  State = "failed"
	Unknown State = "unknown"
)

// worse tells whether a state counts for more than another in the exit code.
func (s State) worse(than State) bool {
	rank := map[State]int{Warning: 1, Failed: 2}
	return rank[s] > rank[than]
}

// Finding is one sentence, and what to do if there is something to do.
type Finding struct {
	Check   string `json:"check"`
	State   State  `json:"state"`
	Finding string `json:"finding"`
	Advice  string `json:"advice,omitempty"`
}

func ok(format string, args ...any) Finding {
	return Finding{State: OK, Finding: fmt.Sprintf(format, args...)}
}

func warning(advice, format string, args ...any) Finding {
	return Finding{State: Warning, Advice: advice, Finding: fmt.Sprintf(format, args...)}
}

func failed(advice, format string, args ...any) Finding {
	return Finding{State: Failed, Advice: advice, Finding: fmt.Sprintf(format, args...)}
}

func unknown(advice, format string, args ...any) Finding {
	return Finding{State: Unknown, Advice: advice, Finding: fmt.Sprintf(format, args...)}
}

// one is for checks that say one thing.
func one(f Finding) []Finding { return []Finding{f} }
