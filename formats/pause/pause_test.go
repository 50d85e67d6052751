package pause

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFor(t *testing.T) {
	began := time.Now()
	require.NoError(t, For(t.Context(), 20*time.Millisecond))
	require.GreaterOrEqual(t, time.Since(began), 20*time.Millisecond)

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- For(ctx, time.Hour) }()
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}
