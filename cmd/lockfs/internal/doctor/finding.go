package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

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

// states are the states in their order of output.
var states = []State{Failed, Warning, Unknown, OK}

// byState orders findings, trouble first.
func byState(a, b Finding) int {
	return cmp.Compare(slices.Index(states, a.State), slices.Index(states, b.State))
}

// summarize counts the findings in one line.
func summarize(findings []Finding) string {
	count := make(map[State]int)
	for _, f := range findings {
		count[f.State]++
	}
	if count[OK] == len(findings) {
		return fmt.Sprintf("all is well: %d findings are ok", len(findings))
	}
	var parts []string
	for _, state := range states {
		if count[state] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[state], state))
		}
	}
	return strings.Join(parts, ", ")
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
