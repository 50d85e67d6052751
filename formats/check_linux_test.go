package formats_test

import (
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

// TestCheckSaysWhoAndWhy: of each kind of file in a plain directory, who has it, until when, and why.
func TestCheckSaysWhoAndWhy(t *testing.T) {
	host, err := os.Hostname()
	require.NoError(t, err)
	gone := exec.Command("true")
	require.NoError(t, gone.Run())
	dead := gone.Process.Pid
	began := time.Date(2025, 10, 25, 12, 0, 0, 0, time.UTC)
	ever := began.AddDate(900, 0, 0)
	semaphore := formats.Rule{Format: formats.Semaphore}
	for _, c := range []struct {
		content string
		rule    formats.Rule
		want    formats.Status
	}{
		{"pid=7\ntimestamp=1761393600\n", semaphore, formats.Status{
			State: formats.Stale, Format: formats.Semaphore, Holder: "7", PID: 7, Acquired: began, Expires: began.Add(time.Hour),
			Reason: "stale since 2025-10-25T13:00:00Z",
		}},
		{"pid=7\ntimestamp=1761393600\n", formats.Rule{StaleAfter: 200 * 365 * 24 * time.Hour}, formats.Status{
			State: formats.Held, Format: formats.Semaphore, Holder: "7", PID: 7, Acquired: began,
			Expires: began.Add(200 * 365 * 24 * time.Hour), Reason: "stale at 2225-09-07T12:00:00Z unless it is renewed",
		}},
		{fmt.Sprintf(`{"task_id":"lock","worker":"w","acquired_at":"2025-10-25T12:00:00Z","expires_at":%q}`, ever.Format(time.RFC3339)),
			formats.Rule{Format: formats.Semaphore}, formats.Status{
				State: formats.Invalid, Format: formats.Swarm, Holder: "w", Acquired: began,
			}},
		{`{"task_id":"lock","worker":"w","acquired_at":"2025-10-25T12:00:00Z"}`, formats.Rule{Format: formats.Swarm}, formats.Status{
			State: formats.Held, Format: formats.Swarm, Holder: "w", Acquired: began, Reason: "it never expires",
		}},
		{fmt.Sprintf(`{"holder":"x","pid":%d,"hostname":%q,"started_at":"2025-10-25T12:00:00Z"}`, dead, host), formats.Rule{}, formats.Status{
			State: formats.Stale, Format: formats.Beads, Holder: "x", Host: host, PID: dead, Acquired: began,
			Reason: fmt.Sprintf("its process %d is gone", dead),
		}},
		{fmt.Sprintf("%d\n", os.Getpid()), formats.Rule{Format: formats.PID}, formats.Status{
			State: formats.Held, Format: formats.PID, Holder: fmt.Sprint(os.Getpid()), PID: os.Getpid(), Acquired: began,
			Reason: fmt.Sprintf("held for as long as its process %d lives", os.Getpid()),
		}},
		{"", semaphore, formats.Status{
			State: formats.Invalid, Format: formats.None, Acquired: began, Empty: true,
			Reason: "empty since 2025-10-25T12:00:00Z: its creator may have crashed",
		}},
		{"anything", formats.Rule{}, formats.Status{
			State: formats.Held, Format: formats.None, Acquired: began, Reason: "of no known format, so time does not make it stale",
		}},
	} {
		path := filepath.Join(t.TempDir(), "lock")
		require.NoError(t, os.WriteFile(path, []byte(c.content), 0o644))
		require.NoError(t, os.Chtimes(path, began, began))
		status, err := formats.Check(path, c.rule)
		require.NoError(t, err)
		if c.want.State == formats.Invalid && !c.want.Empty {
			require.Contains(t, status.Reason, "not a valid semaphore lock: ")
			c.want.Reason, c.want.Expires = status.Reason, status.Expires
		}
		require.Equal(t, c.want, status, c.content)
	}
}

func TestCheckOfOtherThingsThanFiles(t *testing.T) {
	dir := t.TempDir()
	status, err := formats.Check(filepath.Join(dir, "none"), formats.Rule{})
	require.NoError(t, err)
	require.Equal(t, formats.Status{State: formats.Free, Format: formats.None}, status)
	require.NoError(t, os.Symlink("elsewhere", filepath.Join(dir, "link")))
	for _, name := range []string{"link", "."} {
		for format, want := range map[formats.Format]formats.State{0: formats.Held, formats.PID: formats.Invalid} {
			status, err = formats.Check(filepath.Join(dir, name), formats.Rule{Format: format})
			require.NoError(t, err)
			require.Equal(t, want, status.State)
			require.Contains(t, status.Reason, "it is no file")
		}
	}
	_, err = formats.Check(filepath.Join(dir, "none", "lock"), formats.Rule{})
	require.ErrorIs(t, err, fs.ErrNotExist)
}
