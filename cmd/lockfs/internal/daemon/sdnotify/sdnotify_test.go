package sdnotify

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// listen is what systemd does: it answers the next thing that it is told.
func listen(t *testing.T) (next func() string) {
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	t.Setenv("NOTIFY_SOCKET", path)
	return func() string {
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
		said := make([]byte, 1024)
		n, err := conn.Read(said)
		require.NoError(t, err)
		return string(said[:n])
	}
}

func TestWhatIsTold(t *testing.T) {
	next := listen(t)
	Status("waits for a majority")
	require.Equal(t, "STATUS=waits for a majority", next())
	Ready()
	require.Equal(t, "READY=1\nSTATUS=", next())
	Reloading()
	require.Equal(t, "RELOADING=1", next())
	Stopping()
	require.Equal(t, "STOPPING=1", next())
}

func TestNobodyIsToldOfADeadLoop(t *testing.T) {
	next := listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ticks := make(chan time.Time)
	var due atomic.Pointer[time.Time]
	due.Store(new(time.Now()))
	go watch(ctx, slog.New(slog.DiscardHandler), ticks, []Loop{{"loop", func() time.Time { return *due.Load() }}})
	require.Equal(t, "WATCHDOG=1", next())
	ticks <- time.Now()
	require.Equal(t, "WATCHDOG=1", next())
	due.Store(new(time.Now().Add(-time.Hour)))
	ticks <- time.Now() // says nothing
	ticks <- time.Now() // nor that one, but the first is over
	Status("the next thing said")
	require.Equal(t, "STATUS=the next thing said", next())
	due.Store(new(time.Now()))
	ticks <- time.Now()
	require.Equal(t, "WATCHDOG=1", next())
}
