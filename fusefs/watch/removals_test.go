package watch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWatchesAreLookedForOnlyIfTheKernelKnowsWhatWasRemoved(t *testing.T) {
	known := NewKnown()
	searches, told := 0, []uint64{}
	r := NewRemovals(known.Knows, 0, func(_, ino uint64, _ string) { told = append(told, ino) })
	r.watched = func() map[uint64]bool {
		searches++
		return map[uint64]bool{7: true, 9: true}
	}
	r.Add(1, "other", 8)
	require.Zero(t, r.tell(removal{1, 7, "watched"}), "nothing to wait for")
	require.Zero(t, searches)

	known.Told(7)
	known.Told(7)
	known.Told(8)
	known.Forgot(7, 1)
	r.Add(1, "other", 8)
	r.Add(1, "unknown", 9)
	require.GreaterOrEqual(t, r.tell(removal{1, 7, "watched"}), watchedInterval)
	require.Equal(t, 1, searches)
	require.Equal(t, []uint64{7}, told)

	known.Forgot(7, 1)
	known.Forgot(8, 1)
	require.Zero(t, r.tell(removal{1, 7, "watched"}))
	require.Equal(t, 1, searches)
}

func TestASearchThatTakesLongIsFollowedByALongPause(t *testing.T) {
	const took = 60 * time.Millisecond
	r := NewRemovals(func(uint64) bool { return true }, 0, func(_, _ uint64, _ string) {})
	r.watched = func() map[uint64]bool {
		time.Sleep(took)
		return nil
	}
	require.GreaterOrEqual(t, r.tell(removal{1, 7, "removed"}), watchedShare*took)
}
