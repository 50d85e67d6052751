package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// A witness sees who holds a lock. It is a directory on the local disk, outside
// of what is tested, with a log to which workers append "enter NAME" and "leave
// NAME" (and "lost NAME" if their lock was gone, and "crash NAME" instead of leaving)
// and a count that each increments in between, by reading it and writing it, which
// goes wrong if two do it.
type witness struct {
	dir string
}

func newWitness(t testing.TB, dir string) *witness {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	w := &witness{dir: dir}
	require.NoError(t, os.WriteFile(w.path("log"), nil, 0o644))
	require.NoError(t, os.WriteFile(w.path("count"), []byte("0\n"), 0o644))
	return w
}

func (w *witness) path(name string) string { return filepath.Join(w.dir, name) }

// stop tells the workers that they may end once they have done their rounds.
func (w *witness) stop(t testing.TB) {
	t.Helper()
	require.NoError(t, os.WriteFile(w.path("stop"), nil, 0o644))
}

// rounds is how often a worker whose name begins with prefix has had the lock.
func (w *witness) rounds(t testing.TB, prefix string) int {
	t.Helper()
	text, err := os.ReadFile(w.path("log"))
	require.NoError(t, err)
	return strings.Count(string(text), "leave "+prefix)
}

// verdict says what is wrong with what the witness saw, after all workers ended.
func (w *witness) verdict(t testing.TB) (faults []string) {
	t.Helper()
	log, err := os.ReadFile(w.path("log"))
	require.NoError(t, err)
	faults, entered := overlaps(string(log))
	text, err := os.ReadFile(w.path("count"))
	require.NoError(t, err)
	count, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || count != entered {
		faults = append(faults, fmt.Sprintf("the lock was had %d times, the count is %q", entered, text))
	}
	return faults
}

// overlaps finds all that is not a strict sequence of enter and leave, or crash, of the
// same worker. It also answers how often the lock was entered.
func overlaps(log string) (faults []string, entered int) {
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

func TestOverlapsAreFound(t *testing.T) {
	for _, c := range []struct {
		name, log string
		entered   int
		faulty    bool
	}{
		{"nothing", "", 0, false},
		{"one after the other", "enter a\nleave a\nenter b\nleave b\nenter a\nleave a\n", 3, false},
		{"crashed", "enter a\ncrash a\nenter b\nleave b\n", 2, false},
		{"nested", "enter a\nenter b\nleave b\nleave a\n", 2, true},
		{"crossed", "enter a\nenter b\nleave a\nleave b\n", 2, true},
		{"left twice", "enter a\nleave a\nleave a\n", 1, true},
		{"never left", "enter a\n", 1, true},
		{"lost", "enter a\nleave a\nlost a\n", 1, true},
	} {
		faults, entered := overlaps(c.log)
		assert.Equal(t, c.entered, entered, c.name)
		assert.Equal(t, c.faulty, len(faults) > 0, "%s: %v", c.name, faults)
	}
}

// TestWitnessSeesABrokenLock shows that a lock which excludes nobody is found out
// by the same workers, with the same witness, and that a sound one is not.
func TestWitnessSeesABrokenLock(t *testing.T) {
	t.Parallel()
	net := hosts.New(t)
	host := net.Host("a")
	start := func(c client) *job {
		dir := filepath.Join(net.Dir(), c.name)
		require.NoError(t, os.Mkdir(dir, 0o755))
		j := startJob(t, c, dir, newWitness(t, dir+".witness"), 25, host, host, host, host)
		j.witness.stop(t)
		return j
	}
	broken := start(client{"broken", []string{"dash", "broken.sh"}})
	var sound []*job
	for _, c := range clients {
		sound = append(sound, start(c))
	}
	broken.wait(t)
	faults := strings.Join(broken.witness.verdict(t), "\n")
	assert.Contains(t, faults, "while inside", "overlaps")
	assert.Contains(t, faults, "the count is", "lost counts")
	for _, j := range sound {
		j.wait(t)
		assert.Empty(t, j.witness.verdict(t), "%s on the local disk", j.client.name)
		assert.Empty(t, j.errors(host), "%s on the local disk", j.client.name)
	}
}
