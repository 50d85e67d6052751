package hosts

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWhatRunsIsToldByItsStat has threads as the kernel shows them.
func TestWhatRunsIsToldByItsStat(t *testing.T) {
	for _, test := range []struct {
		what, name string
		state      rune
		flags      int
		runs       bool
	}{
		{"sleeps", "soak", 'S', 0x400040, true},
		{"computes", "a (b) c", 'R', 0x400000, true},
		{"is stopped", "soak", 'T', 0x400040, false},
		{"waits in the kernel", "soak", 'D', 0x400040, false},
		{"has exited, and closes a file of a mount", "soak", 'S', 0x40004c, false},
		{"is a zombie", "soak", 'Z', 0x40004c, false},
	} {
		stat := fmt.Sprintf("26088 (%s) %c 26008 26008 0 0 -1 %d 0 0 0 0 0 0 0 0 20 0 1 0 2762977 0 0\n", test.name, test.state, test.flags)
		require.Equal(t, test.runs, runs(stat), test.what)
	}
	require.False(t, runs(""), "is gone")
}
