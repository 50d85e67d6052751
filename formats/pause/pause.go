// Package pause waits for a time, such as before a retry.
package pause

import (
	"context"
	"time"
)

// For returns after d, or with the context's error once the context ends.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
