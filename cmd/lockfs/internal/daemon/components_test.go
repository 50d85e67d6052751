package daemon

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPartsThatHangAreWaitedForOnce stops each of them all the same.
func TestPartsThatHangAreWaitedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := make(chan struct{})
		asked := make(chan string, 3)
		var all parts
		for _, name := range []string{"node", "HTTP", "Forrst"} {
			all.started(name, func() error {
				asked <- name
				<-over
				return nil
			})
		}
		began := time.Now()
		all.stopSoon(stopLimit, slog.New(slog.DiscardHandler))
		require.Equal(t, 2*stopLimit, time.Since(began))
		synctest.Wait()
		require.Len(t, asked, len(all))
		close(over)
	})
}
