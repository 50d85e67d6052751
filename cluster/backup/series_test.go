package backup

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/atomicfile"
)

// TestASeriesRemovesItsOwnOnly: the oldest ones, and what a process left that ended while it wrote.
func TestASeriesRemovesItsOwnOnly(t *testing.T) {
	content, _ := someBackup(t)
	write := func(w io.Writer) error { _, err := w.Write(content); return err }
	dir := filepath.Join(t.TempDir(), "missing", "dir")
	now := time.Date(2026, 2, 3, 4, 5, 6, 7, time.UTC)
	s := &Series{Dir: dir, Node: "a", Keep: 2}
	last, err := s.Last(now)
	require.NoError(t, err)
	require.Zero(t, last)
	for i := range 4 {
		made, err := s.Add(now.Add(time.Duration(i)*time.Hour), write)
		require.NoError(t, err)
		require.Equal(t, uint64(12), made.Header.Index)
		require.Equal(t, i >= 2, len(made.Removed) == 1)
		if i == 0 {
			for _, other := range []string{"lockfs-a-b-20200101T000000Z.backup", "lockfs-b-20200101T000000Z.backup", "lockfs-a-1.backup", "notes", "x" + atomicfile.Unfinished} {
				require.NoError(t, os.WriteFile(filepath.Join(dir, other), nil, 0o600))
			}
			require.NoError(t, os.WriteFile(filepath.Join(dir, Name("a", now)+atomicfile.Unfinished), nil, 0o600))
		}
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	require.Equal(t, []string{
		"lockfs-a-1.backup", "lockfs-a-20260203T060506Z.backup", "lockfs-a-20260203T070506Z.backup", "lockfs-a-b-20200101T000000Z.backup",
		"lockfs-b-20200101T000000Z.backup", "notes", "x.tmp",
	}, names)
	last, err = s.Last(now.Add(150 * time.Minute))
	require.NoError(t, err)
	require.Equal(t, now.Add(2*time.Hour).Truncate(time.Second), last, "what is of the future does not count")
}

// TestAClockThatWasAhead has made more backups than are kept: the next ones stay, nevertheless.
func TestAClockThatWasAhead(t *testing.T) {
	content, _ := someBackup(t)
	write := func(w io.Writer) error { _, err := w.Write(content); return err }
	now := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	s := &Series{Dir: t.TempDir(), Node: "a", Keep: 2}
	for i := range 3 {
		_, err := s.Add(now.AddDate(4, 0, i), write)
		require.NoError(t, err)
	}
	for i := range 3 {
		at := now.Add(time.Duration(i) * time.Hour)
		made, err := s.Add(at, write)
		require.NoError(t, err)
		require.FileExists(t, made.Path)
		last, err := s.Last(at)
		require.NoError(t, err)
		require.Equal(t, at, last)
	}
	names, err := s.names()
	require.NoError(t, err)
	require.Equal(t, []string{Name("a", now.Add(time.Hour)), Name("a", now.Add(2*time.Hour))}, names)
}
