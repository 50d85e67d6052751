package session

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAnyReplyEndsAnOutage goes through what a silence is told.
func TestAnyReplyEndsAnOutage(t *testing.T) {
	var s availability
	of := func() [2]bool { return [2]bool{s.isUnavailable(anyRequest), s.isUnavailable(commandRequest)} }
	since := s.replies()
	require.Equal(t, [2]bool{}, of())
	require.True(t, s.markUnavailable(since, anyRequest))
	require.False(t, s.markUnavailable(since, anyRequest), "it has begun")
	require.Equal(t, [2]bool{true, false}, of())
	require.True(t, s.recordReply(anyRequest))
	require.False(t, s.recordReply(anyRequest))
	require.Equal(t, [2]bool{}, of())

	require.False(t, s.markUnavailable(since, anyRequest), "there was an answer since that call began")
	require.True(t, s.markUnavailable(since, commandRequest), "but to no command")
	require.Equal(t, [2]bool{false, true}, of())
	require.False(t, s.recordReply(anyRequest))
	require.Equal(t, [2]bool{false, true}, of(), "commands may still have no disk to go to")
	require.True(t, s.recordReply(commandRequest))
	require.Equal(t, [2]bool{}, of())
}

// TestRuntimeTimeoutDoesNotCountAPause has a timer go off as late as it likes: this process was stopped.
func TestRuntimeTimeoutDoesNotCountAPause(t *testing.T) {
	over := 0
	ctx, cancel := withRuntimeTimeout(t.Context(), time.Hour, func() { over++ })
	defer cancel()
	p := ctx.(*runtimeTimeout)
	for range timeoutSteps - 1 {
		p.tick()
		require.NoError(t, ctx.Err())
	}
	p.tick()
	<-ctx.Done()
	require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
	require.Equal(t, 1, over)
}

func TestRuntimeTimeoutEndsWithItsParent(t *testing.T) {
	asked, giveUp := context.WithCancel(t.Context())
	ctx, cancel := withRuntimeTimeout(asked, time.Hour, func() { t.Error("its time is not up") })
	defer cancel()
	attempt, end := context.WithTimeout(ctx, time.Hour)
	defer end()
	require.NoError(t, ctx.Err())
	giveUp()
	<-attempt.Done()
	require.ErrorIs(t, ctx.Err(), context.Canceled)
}
