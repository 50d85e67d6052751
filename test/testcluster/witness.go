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

// A Witness sees who holds a lock. It is a directory on the local disk, outside
// of what is tested, with a log to which workers append "enter NAME" and "leave
// NAME" (and "lost NAME" if their lock was gone, and "crash NAME" instead of leaving)
// and a count that each increments in between, by reading it and writing it, which
// goes wrong if two do it.
type Witness struct {
	Dir string
}

// NewWitness makes a witness in a directory that need not be there.
func NewWitness(t testing.TB, dir string) *Witness {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	w := &Witness{Dir: dir}
	require.NoError(t, os.WriteFile(w.Path("log"), nil, 0o644))
	require.NoError(t, os.WriteFile(w.Path("count"), []byte("0\n"), 0o644))
	return w
}

// Path is one of its files.
func (w *Witness) Path(name string) string { return filepath.Join(w.Dir, name) }

// Stop tells the workers that they may end once they have done their rounds.
func (w *Witness) Stop(t testing.TB) {
	t.Helper()
	require.NoError(t, os.WriteFile(w.Path("stop"), nil, 0o644))
}

// Rounds is how often a worker whose name begins with prefix has had the lock.
func (w *Witness) Rounds(t testing.TB, prefix string) int {
	t.Helper()
	text, err := os.ReadFile(w.Path("log"))
	require.NoError(t, err)
	return strings.Count(string(text), "leave "+prefix)
}

// Verdict says what is wrong with what the witness saw, after all workers ended.
func (w *Witness) Verdict(t testing.TB) (faults []string) {
	t.Helper()
	log, err := os.ReadFile(w.Path("log"))
	require.NoError(t, err)
	faults, entered := Overlaps(string(log))
	text, err := os.ReadFile(w.Path("count"))
	require.NoError(t, err)
	count, err := strconv.Atoi(strings.TrimSpace(string(text)))
	// Who crashed may have counted or not.
	if crashed := strings.Count(string(log), "crash "); err != nil || count > entered || count < entered-crashed {
		faults = append(faults, fmt.Sprintf("the lock was had %d times, the count is %q", entered, text))
	}
	return faults
}

// Overlaps finds all that is not a strict sequence of enter and leave, or crash, of the
// same worker. It also answers how often the lock was entered.
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
