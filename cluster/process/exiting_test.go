package process

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestExiting shows that of a process whose main thread is gone the others live on, as those that execute
// another program do for as long as one of its threads takes to end.
func TestExiting(t *testing.T) {
	running, leaderless, killed := startChild(t, 0, "wait"), startChild(t, 0, "leaderless"), startChild(t, 0, "threads", "3")
	for _, p := range []*program{running, leaderless, killed} {
		p.numbers()
		require.False(t, Exiting(p.pid()), p.Args)
	}
	require.True(t, zombie(leaderless.pid()))
	killed.kill()
	require.True(t, Exiting(killed.pid()))
	killed.end()
	require.False(t, Exiting(killed.pid()), "it is gone")
}
