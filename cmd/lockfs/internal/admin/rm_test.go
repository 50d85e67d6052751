package admin

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExplainHeld(t *testing.T) {
	v := &victim{path: "a.lock", root: "/locks", below: "jobs/a.lock"}
	for state, want := range map[string]string{
		"":     "a.lock is not removed: it is held, see /locks/.lockfs/why/jobs/a.lock; wait",
		"held": "a.lock is not removed: it is held (beads lock of me, pid 7 on m); wait, or let its holder release it",
		"unreachable": "a.lock is not removed: its host m is unreachable and may still hold it (beads lock of me, pid 7 on m); " +
			"wait until the host is back, or run `lockfs host forget m` if it is gone for good",
	} {
		require.Equal(t, want+"; --force breaks the lock of a live holder",
			explainHeld(v, state, lockOf("beads", "me", "m", "7"), "m"))
	}
}

// TestRemoveElsewhere is about paths that are not on a mount of lockfs: nothing happens to them.
func TestRemoveElsewhere(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, controlDir), 0o700))
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for path, problem := range map[string]string{
		file:         file + ": it is not on a lockfs mount",
		dir + "/no/": "it is not on a lockfs mount",
		dir + "/x/y": "no such file or directory",
		"/":          "give the name of a lock",
		dir + "/.":   "give the name of a lock",
		dir + "/../": "give the name of a lock",
		"":           "give the name of a lock",
		"rm_test.go": "rm_test.go: it is not on a lockfs mount",
	} {
		require.ErrorContains(t, remove(t.Context(), []string{path}, false), problem, path)
		require.ErrorContains(t, remove(t.Context(), []string{path}, true), problem, path)
	}
	err := remove(t.Context(), []string{file, dir}, false)
	require.ErrorContains(t, err, "; therefore also not removed: "+dir)
	require.FileExists(t, file)
}
