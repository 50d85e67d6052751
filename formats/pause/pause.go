// Package pause waits where there is nothing to wait for but time: before what has failed is tried again.
package pause

import (
	"context"
	"time"
)

// For returns after d, or with the context's error as soon as that ends.
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
