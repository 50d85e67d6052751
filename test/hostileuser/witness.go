package hostileuser

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// Witnesses are ordinary users, one on each of some hosts.
type Witnesses struct {
	t   testing.TB
	all []*hosts.Process
}

// Seen has a witness's observations of its own calls.
type Seen struct {
	Host     string         `json:"-"`
	Calls    int            `json:"calls"`
	Creation time.Duration  `json:"creation"` // median of exclusive creations and mkdir
	Longest  time.Duration  `json:"longest"`
	Slowest  string         `json:"slowest"` // name of the longest call
	Failures map[string]int `json:"failures"`
}

func (s Seen) String() string {
	return fmt.Sprintf("%s: %d calls, a creation takes %v, longest %s %v, failures %v",
		s.Host, s.Calls, s.Creation.Round(10*time.Microsecond), s.Slowest, s.Longest.Round(10*time.Microsecond), s.Failures)
}

// StartWitnesses starts a witness on each host, in a directory of [Dir].
func StartWitnesses(t testing.TB, dir string, on ...*hosts.Host) *Witnesses {
	t.Helper()
	w := &Witnesses{t: t}
	for _, h := range on {
		p := start(t, h, WitnessUID, "witness.py", dir)
		require.NoError(t, p.WaitOutput("works\n"))
		w.all = append(w.all, p)
	}
	return w
}

// Forget clears the observations so far.
func (w *Witnesses) Forget() {
	for _, p := range w.all {
		p.Signal(syscall.SIGUSR1)
	}
}

// Observe clears the observations, waits for the given number of calls of each witness, and returns the new
// ones.
func (w *Witnesses) Observe(calls int) (all []Seen) {
	w.t.Helper()
	w.Forget()
	hosts.Eventually(w.t, "the witnesses work", func() (string, bool) {
		all = w.Seen()
		enough := true
		for _, seen := range all {
			enough = enough && seen.Calls >= calls
		}
		return fmt.Sprint(all), enough
	})
	return all
}

const seenWord = "seen "

// Seen returns the observations since the last Forget. It waits for the current call of each witness.
func (w *Witnesses) Seen() (all []Seen) {
	w.t.Helper()
	before := make([]int, len(w.all))
	for i, p := range w.all {
		before[i] = strings.Count(p.Stdout(), seenWord)
		p.Signal(syscall.SIGUSR2)
	}
	for i, p := range w.all {
		var line string
		hosts.Eventually(w.t, "the witness on "+p.Host().Name()+" ends its call", func() (string, bool) {
			parts := strings.Split(p.Stdout(), seenWord)
			last := parts[len(parts)-1]
			line = last
			return last, len(parts)-1 > before[i] && strings.HasSuffix(last, "\n")
		})
		seen := Seen{Host: p.Host().Name()}
		require.NoError(w.t, json.Unmarshal([]byte(line), &seen), line)
		all = append(all, seen)
	}
	return all
}

// Pause stops the witnesses between or during calls, until Resume.
func (w *Witnesses) Pause() {
	for _, p := range w.all {
		p.Freeze()
	}
}

// Resume continues the witnesses.
func (w *Witnesses) Resume() {
	for _, p := range w.all {
		p.Thaw()
	}
}

// End kills the witnesses.
func (w *Witnesses) End() {
	for _, p := range w.all {
		p.Kill()
	}
}

// Judge decides from observations whether another user took anything from the witnesses.
type Judge struct {
	Longest  time.Duration // longest permitted call
	MayFail  bool          // calls may fail, because faults are injected
	SameCost []Seen        // seen without the user; a creation may take twice as long plus SameCostSlack; nil: Longest
}

// SameCostSlack allows for other programs on a busy machine.
const SameCostSlack = time.Millisecond

// Verdict returns an error with each witness's losses.
func (j Judge) Verdict(all []Seen) error {
	var harm []error
	for i, seen := range all {
		if len(seen.Failures) > 0 && !j.MayFail {
			harm = append(harm, fmt.Errorf("calls failed on %v", seen))
		}
		if seen.Longest > j.Longest {
			harm = append(harm, fmt.Errorf("a call took longer than %v on %v", j.Longest, seen))
		}
		if j.SameCost == nil {
			continue
		}
		if alone := j.SameCost[i]; seen.Creation > 2*alone.Creation+SameCostSlack {
			harm = append(harm, fmt.Errorf("creations cost more than twice the %v without the user, on %v", alone.Creation, seen))
		}
	}
	return errors.Join(harm...)
}

// Require requires that nothing was taken from the witnesses.
func (j Judge) Require(t testing.TB, all []Seen) {
	t.Helper()
	require.NoError(t, j.Verdict(all))
}
