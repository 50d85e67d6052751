package formats_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/formats"
)

func TestWaitTellsTheState(t *testing.T) {
	host, err := os.Hostname()
	require.NoError(t, err)
	gone := exec.Command("true")
	require.NoError(t, gone.Run())
	long := time.Now().Add(-2 * time.Hour).UTC()
	semaphore := func(at time.Time) string { return fmt.Sprintf("pid=1\ntimestamp=%d\n", at.Unix()) }
	beads := func(pid int, host string) string {
		return fmt.Sprintf(`{"holder":"x","pid":%d,"hostname":%q,"started_at":"2025-10-25T12:00:00Z"}`, pid, host)
	}
	swarm := func(expires string) string {
		return fmt.Sprintf(`{"task_id":"lock","worker":"w","acquired_at":"2025-02-02T10:00:00Z","expires_at":%q}`, expires)
	}
	for content, want := range map[string]formats.State{
		semaphore(long):                      formats.Stale,
		semaphore(time.Now()):                formats.Held,
		swarm(long.Format(time.RFC3339)):     formats.Stale,
		swarm(""):                            formats.Held,
		beads(gone.Process.Pid, host):        formats.Stale,
		beads(gone.Process.Pid, "not-"+host): formats.Held,
		beads(os.Getpid(), host):             formats.Held,
		fmt.Sprintln(gone.Process.Pid):       formats.Stale,
		fmt.Sprintln(os.Getpid()):            formats.Held,
		"anything":                           formats.Held,
		"":                                   formats.Held,
		semaphore(long)[:len(semaphore(long))-len("\n")-1]: formats.Held,
	} {
		path := filepath.Join(t.TempDir(), "lock")
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		state, err := formats.Wait(ctx, path)
		require.Equal(t, want, state, content)
		require.Equal(t, want == formats.Held, errors.Is(err, context.Canceled))
	}
}

func TestWaitForAnyKindOfName(t *testing.T) {
	dir := t.TempDir()
	for name, err := range map[string]error{
		"file": os.WriteFile(filepath.Join(dir, "file"), nil, 0o600),
		"dir":  os.Mkdir(filepath.Join(dir, "dir"), 0o700),
		"link": os.Symlink("elsewhere", filepath.Join(dir, "link")),
		"none": nil,
	} {
		require.NoError(t, err)
		done := make(chan formats.State, 1)
		go func() {
			state, err := formats.Wait(t.Context(), filepath.Join(dir, name))
			if err != nil {
				t.Error(err)
			}
			done <- state
		}()
		_ = os.Remove(filepath.Join(dir, name))
		require.Equal(t, formats.Free, <-done)
	}
	_, err := formats.Wait(t.Context(), filepath.Join(dir, "none", "lock"))
	require.ErrorIs(t, err, fs.ErrNotExist, "nobody knows whether that would have a lock")
}
