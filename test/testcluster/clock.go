package testcluster

import (
	"testing"
	"time"
)

// A clock is the clock of a server or daemon from its next start on.
type clock struct {
	// Ahead is its offset from the machine's clock.
	Ahead  time.Duration
	faulty string // the program with a variable clock
}

// SetClock sets the clock wrong, with another program, or right: ahead is 0.
func (c *clock) SetClock(t testing.TB, ahead time.Duration) {
	t.Helper()
	c.Ahead, c.faulty = ahead, ""
	if ahead != 0 {
		c.faulty = FaultyProgram(t)
	}
}

// command returns the program with this clock, for env(1).
func (c *clock) command(program string) []string {
	if c.Ahead == 0 {
		return []string{program}
	}
	return []string{"LOCKFS_TEST_CLOCK_OFFSET=" + c.Ahead.String(), c.faulty}
}
