// Package costs checks that the cost of a command does not grow with a pile of other things.
package costs

import (
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const (
	few   = 1000
	ratio = 3 // a logarithm grows to 1.7 times as much from 1,000 to 100,000; processor caches cost the rest
)

// RequireBounded compares a command beside 100,000 things (10,000 with the race detector) with the same
// command beside 1,000. prepare makes a pile and returns the command, of which one measurement does some.
// Only the time counts that the processor spends in this thread, and of many measurements the least, so other
// load on the machine does not matter.
func RequireBounded(t *testing.T, times int, prepare func(pile int) (command func())) {
	t.Helper()
	small, large := prepare(few), prepare(many)
	least, leastOfMany := math.Inf(1), math.Inf(1)
	for tries := 0; tries < 20 || tries < 400 && leastOfMany > ratio*least; tries++ {
		least, leastOfMany = min(least, threadTime(t, times, small)), min(leastOfMany, threadTime(t, times, large))
	}
	t.Logf("%.1f µs beside %d, %.1f µs beside %d: %.2f times as much", least/1e3, few, leastOfMany/1e3, many, leastOfMany/least)
	require.LessOrEqual(t, leastOfMany, ratio*least)
}

// threadTime is the processor time of one command in nanoseconds.
func threadTime(t *testing.T, times int, command func()) float64 {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	now := func() int64 {
		var clock unix.Timespec
		require.NoError(t, unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &clock))
		return clock.Nano()
	}
	began := now()
	for range times {
		command()
	}
	return float64(now()-began) / float64(times)
}
