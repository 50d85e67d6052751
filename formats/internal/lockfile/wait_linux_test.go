package lockfile

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWatchIsToldOfWhateverHappensToTheFile(t *testing.T) {
	for name, do := range map[string]func(t *testing.T, path string){
		"removed":  func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) },
		"renamed":  func(t *testing.T, path string) { require.NoError(t, os.Rename(path, path+".away")) },
		"replaced": func(t *testing.T, path string) { require.NoError(t, os.Rename(path+".new", path)) },
		"written":  func(t *testing.T, path string) { require.NoError(t, os.WriteFile(path, []byte("x"), 0o600)) },
		"touched":  func(t *testing.T, path string) { require.NoError(t, os.Chtimes(path, time.Now(), time.Now())) },
		"removed while it is open": func(t *testing.T, path string) {
			f, err := os.Open(path)
			require.NoError(t, err)
			t.Cleanup(func() { _ = f.Close() })
			require.NoError(t, os.Remove(path))
		},
	} {
		path := filepath.Join(t.TempDir(), "lock")
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		require.NoError(t, os.WriteFile(path+".new", nil, 0o600))
		w := watch(path)
		require.True(t, w.current(), name)
		_, err := os.ReadFile(path)
		require.NoError(t, err)
		changed, err := w.wait(t.Context(), time.Millisecond)
		require.NoError(t, err)
		require.False(t, changed, "it was read only")
		do(t, path)
		changed, err = w.wait(t.Context(), time.Minute)
		require.NoError(t, err)
		require.True(t, changed, name)
		require.Equal(t, name == "written" || name == "touched", w.current(), name)
		w.close()
	}
}

func TestWaitNeverMissesARelease(t *testing.T) {
	dir := t.TempDir()
	for range 200 {
		path := filepath.Join(dir, "lock")
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		began := time.Now()
		done := make(chan error, 1)
		go func() {
			done <- Wait(t.Context(), path, time.Hour, func() (time.Time, bool) {
				_, err := os.Lstat(path)
				return time.Time{}, err == nil
			})
		}()
		require.NoError(t, os.Remove(path))
		require.NoError(t, <-done)
		require.Less(t, time.Since(began), relook/2)
	}
}

// TestWaitPollsWhatItCannotWatch has a name that comes and goes without a file.
func TestWaitPollsWhatItCannotWatch(t *testing.T) {
	calls := 0
	require.NoError(t, Wait(t.Context(), filepath.Join(t.TempDir(), "none"), time.Millisecond, func() (time.Time, bool) {
		calls++
		return time.Time{}, calls < 5
	}))
	require.Equal(t, 5, calls)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	path := filepath.Join(t.TempDir(), "lock")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	for _, path := range []string{path, path + ".none"} {
		calls = 0 // the second time ctx has ended before
		require.ErrorIs(t, Wait(ctx, path, time.Hour, func() (time.Time, bool) {
			if calls++; calls == 2 {
				cancel()
			}
			return time.Time{}, true
		}), context.Canceled)
		require.Equal(t, 2, calls)
	}
}

func TestUntilLook(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		waited, staleIn, want time.Duration // staleIn 0: never
	}{
		{0, 0, briefest},
		{100 * time.Millisecond, 0, 100 * time.Millisecond},
		{soon, 0, relook},
		{time.Hour, time.Minute, relook},
		{time.Hour, 3 * time.Second, 3 * time.Second},
		{time.Hour, -1, briefest},
		{time.Hour, -time.Second, time.Second},
		{time.Hour, -time.Hour, relook},
	} {
		staleAt := time.Time{}
		if c.staleIn != 0 {
			staleAt = now.Add(c.staleIn)
		}
		require.Equal(t, c.want, untilLook(now.Add(-c.waited), staleAt, now), "%+v", c)
	}
}

// TestWaitLooksWhenTheLockGoesStale, which nothing tells.
func TestWaitLooksWhenTheLockGoesStale(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	staleAt := time.Now().Add(1200 * time.Millisecond)
	var stale bool
	require.NoError(t, Wait(t.Context(), path, time.Hour, func() (time.Time, bool) {
		stale = time.Now().After(staleAt)
		return staleAt, !stale
	}))
	require.Less(t, time.Since(staleAt), relook/2)
}
