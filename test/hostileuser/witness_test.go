package hostileuser

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestVerdicts: each kind of harm is found, on whichever host.
func TestVerdicts(t *testing.T) {
	alone := []Seen{{Host: "a", Creation: time.Millisecond}, {Host: "b", Creation: 2 * time.Millisecond}}
	beside := func(change func(*Seen)) []Seen {
		all := []Seen{{Host: "a", Creation: 2 * time.Millisecond, Longest: time.Second}, {Host: "b", Creation: 2 * time.Millisecond, Longest: time.Second}}
		change(&all[1])
		return all
	}
	judge := Judge{Longest: time.Second, SameCost: alone}
	require.NoError(t, judge.Verdict(beside(func(*Seen) {})))
	require.ErrorContains(t, judge.Verdict(beside(func(s *Seen) { s.Longest++ })), "longer than 1s on b")
	require.ErrorContains(t, judge.Verdict(beside(func(s *Seen) { s.Creation = 6 * time.Millisecond })), "twice the 2ms without the user, on b")
	failing := beside(func(s *Seen) { s.Failures = map[string]int{"mkdir: ENOSPC": 1} })
	require.ErrorContains(t, judge.Verdict(failing), "failed on b")
	judge.MayFail = true
	require.NoError(t, judge.Verdict(failing))
}
