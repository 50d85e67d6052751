package testcluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A Witness observes the holders of a lock. It is a directory on the local disk, independent of the tested
// file system, with a log and a count. Workers append "enter NAME" and "leave NAME" to the log ("lost NAME"
// after losing the lock, and "crash NAME" instead of leaving). In between they read, increment and write the
// count, which goes wrong if two do it at once.
type Witness struct {
	Dir string
}

// NewWitness makes a witness in a directory, created if missing.
func NewWitness(t testing.TB, dir string) *Witness {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	w := &Witness{Dir: dir}
	require.NoError(t, os.WriteFile(w.Path("log"), nil, 0o644))
	require.NoError(t, os.WriteFile(w.Path("count"), []byte("0\n"), 0o644))
	return w
}

// Path returns the path of one of its files.
func (w *Witness) Path(name string) string { return filepath.Join(w.Dir, name) }

// Stop permits the workers to end after their rounds.
func (w *Witness) Stop(t testing.TB) {
	t.Helper()
	require.NoError(t, os.WriteFile(w.Path("stop"), nil, 0o644))
}

// Rounds returns the number of acquisitions by workers with a prefix.
func (w *Witness) Rounds(t testing.TB, prefix string) int {
	t.Helper()
	text, err := os.ReadFile(w.Path("log"))
	require.NoError(t, err)
	return strings.Count(string(text), "leave "+prefix)
}

// Verdict returns the faults in its records, after all workers have ended.
func (w *Witness) Verdict(t testing.TB) (faults []string) {
	t.Helper()
	log, err := os.ReadFile(w.Path("log"))
	require.NoError(t, err)
	faults, entered := Overlaps(string(log))
	text, err := os.ReadFile(w.Path("count"))
	require.NoError(t, err)
	count, err := strconv.Atoi(strings.TrimSpace(string(text)))
	// A crashed worker may have counted or not.
	if crashed := strings.Count(string(log), "crash "); err != nil || count > entered || count < entered-crashed {
		faults = append(faults, fmt.Sprintf("the lock was had %d times, the count is %q", entered, text))
	}
	return faults
}

// Overlaps returns each violation of the strict sequence of enter and then leave or crash by the same worker,
// and the number of entries.
func Overlaps(log string) (faults []string, entered int) {
	inside := make(map[string]bool)
	number := 0
	for line := range strings.Lines(log) {
		number++
		line = strings.TrimSuffix(line, "\n")
		event, name, _ := strings.Cut(line, " ")
		switch {
		case event == "enter" && len(inside) == 0:
			entered++
			inside[name] = true
		case event == "enter":
			faults = append(faults, fmt.Sprintf("line %d: %s while inside: %v", number, line, inside))
			entered++
			inside[name] = true
		case (event == "leave" || event == "crash") && inside[name]:
			delete(inside, name)
		default:
			faults = append(faults, fmt.Sprintf("line %d: %s while inside: %v", number, line, inside))
		}
	}
	if len(inside) > 0 {
		faults = append(faults, fmt.Sprintf("never left: %v", inside))
	}
	return faults, entered
}
