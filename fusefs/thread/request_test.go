package thread

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWhoDoesNotWaitIsNotWatched: a goroutine begins once somebody waits, and ends with the request.
func TestWhoDoesNotWaitIsNotWatched(t *testing.T) {
	before := runtime.NumGoroutine()
	request := NewRequest(make(chan struct{}), 0)
	for range 100 {
		ctx, end := request.WhileWaitedFor(0)
		require.NoError(t, ctx.Err())
		end()
		require.Error(t, ctx.Err())
	}
	ctx, end := request.WhileWaitedFor(0)
	require.Equal(t, before, runtime.NumGoroutine())
	select {
	case <-ctx.Done():
		t.Error("nobody was killed")
	default:
	}
	require.Equal(t, before+1, runtime.NumGoroutine())
	end()
	<-ctx.Done()
	for runtime.NumGoroutine() > before {
		time.Sleep(time.Millisecond)
	}
}
