package session

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSilenceIsBrokenByAnyAnswer goes through what a silence is told.
func TestSilenceIsBrokenByAnyAnswer(t *testing.T) {
	var s silence
	of := func() [2]bool { return [2]bool{s.of(anything), s.of(aCommand)} }
	since := s.heard()
	require.Equal(t, [2]bool{}, of())
	require.True(t, s.endured(since, anything))
	require.False(t, s.endured(since, anything), "it has begun")
	require.Equal(t, [2]bool{true, false}, of())
	require.True(t, s.answered(anything))
	require.False(t, s.answered(anything))
	require.Equal(t, [2]bool{}, of())

	require.False(t, s.endured(since, anything), "there was an answer since that call began")
	require.True(t, s.endured(since, aCommand), "but to no command")
	require.Equal(t, [2]bool{false, true}, of())
	require.False(t, s.answered(anything))
	require.Equal(t, [2]bool{false, true}, of(), "commands may still have no disk to go to")
	require.True(t, s.answered(aCommand))
	require.Equal(t, [2]bool{}, of())
}

// TestPatienceDoesNotCountAPause has a timer go off as late as it likes: this process was stopped.
func TestPatienceDoesNotCountAPause(t *testing.T) {
	over := 0
	ctx, cancel := withPatience(t.Context(), time.Hour, func() { over++ })
	defer cancel()
	p := ctx.(*patience)
	for range patienceSteps - 1 {
		p.count()
		require.NoError(t, ctx.Err())
	}
	p.count()
	<-ctx.Done()
	require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
	require.Equal(t, 1, over)
}

func TestPatienceEndsWithWhoAsks(t *testing.T) {
	asked, giveUp := context.WithCancel(t.Context())
	ctx, cancel := withPatience(asked, time.Hour, func() { t.Error("its time is not up") })
	defer cancel()
	attempt, end := context.WithTimeout(ctx, time.Hour)
	defer end()
	require.NoError(t, ctx.Err())
	giveUp()
	<-attempt.Done()
	require.ErrorIs(t, ctx.Err(), context.Canceled)
}
