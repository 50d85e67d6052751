package testcluster

import (
	"testing"
	"time"
)

// A clock is what a server or a daemon takes for the time, from its next start on.
type clock struct {
	// Ahead is by how much it is ahead of the machine's.
	Ahead  time.Duration
	faulty string // the program that can be told so
}

// SetClock makes the clock wrong, for which there is another program, or right: ahead is 0.
func (c *clock) SetClock(t testing.TB, ahead time.Duration) {
	t.Helper()
	c.Ahead, c.faulty = ahead, ""
	if ahead != 0 {
		c.faulty = FaultyProgram(t)
	}
}

// command is the program by this clock, for env(1).
func (c *clock) command(program string) []string {
	if c.Ahead == 0 {
		return []string{program}
	}
	return []string{"LOCKFS_TEST_CLOCK_OFFSET=" + c.Ahead.String(), c.faulty}
}
