package doctor

import "fmt"

// State is the result of a check.
type State string

// Results of checks. Unknown means a check could not run, which is no fault.
const (
	OK      State = "ok"
	Warning State = "warning"
	Failed  State = "failed"
	Unknown State = "unknown"
)

// worse reports whether a state has priority in the exit code.
func (s State) worse(than State) bool {
	rank := map[State]int{Warning: 1, Failed: 2}
	return rank[s] > rank[than]
}

// Finding is one sentence, and advice if there is something to do.
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

// one is for checks with one finding.
func one(f Finding) []Finding { return []Finding{f} }
