package thread

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestThreadsThatEndedAreForgotten, and no others, however long they are in a system call.
func TestThreadsThatEndedAreForgotten(t *testing.T) {
	notes := NewNotes[int](0)
	notes.hasEnded = func(thread uint32) bool { return thread >= 1000 }
	for thread := range uint32(10_000) {
		notes.Note(thread+1, 5)
		require.LessOrEqual(t, len(notes.byThread), 2*fewThreads)
	}
	for thread := range uint32(999) {
		_, _, found := notes.Get(thread + 1)
		require.True(t, found)
	}
}

// TestWhatIsOfNoUseIsForgotten, also of threads that are there.
func TestWhatIsOfNoUseIsForgotten(t *testing.T) {
	notes := NewNotes[int](time.Nanosecond)
	for thread := range uint32(10_000) {
		notes.Note(thread+1, 5)
		require.LessOrEqual(t, len(notes.byThread), fewThreads)
	}
}
