package testcluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

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
		faults, entered := Overlaps(c.log)
		assert.Equal(t, c.entered, entered, c.name)
		assert.Equal(t, c.faulty, len(faults) > 0, "%s: %v", c.name, faults)
	}
}

// TestVerdictCountsCrashes: who crashed inside may have counted or not, and nobody else.
func TestVerdictCountsCrashes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		log, count string
		faulty     bool
	}{
		{"enter a\ncrash a\nenter b\nleave b\n", "1", false},
		{"enter a\ncrash a\nenter b\nleave b\n", "2", false},
		{"enter a\ncrash a\nenter b\nleave b\n", "0", true},
		{"enter a\ncrash a\nenter b\nleave b\n", "3", true},
		{"enter a\nleave a\nenter b\nleave b\n", "1", true},
		{"enter a\ncrash a\n", "", true},
	} {
		w := NewWitness(t, t.TempDir())
		require.NoError(t, os.WriteFile(w.Path("log"), []byte(c.log), 0o644))
		require.NoError(t, os.WriteFile(w.Path("count"), []byte(c.count+"\n"), 0o644))
		assert.Equal(t, c.faulty, len(w.Verdict(t)) > 0, "%q", c)
	}
}

// TestWitnessSeesABrokenLock shows that a lock which excludes nobody is found out
// by the same workers, with the same witness, and that a sound one is not.
func TestWitnessSeesABrokenLock(t *testing.T) {
	t.Parallel()
	net := hosts.New(t)
	host := net.Host("a")
	start := func(c Client) *Job {
		dir := filepath.Join(net.Dir(), c.Name)
		require.NoError(t, os.Mkdir(dir, 0o755))
		j := StartJob(t, c, dir, NewWitness(t, dir+".witness"), 25, host, host, host, host)
		j.Witness.Stop(t)
		return j
	}
	broken := start(Client{"broken", []string{"dash", "broken.sh"}})
	var sound []*Job
	for _, c := range Clients {
		sound = append(sound, start(c))
	}
	broken.Wait(t)
	faults := strings.Join(broken.Witness.Verdict(t), "\n")
	assert.Contains(t, faults, "while inside", "overlaps")
	assert.Contains(t, faults, "the count is", "lost counts")
	for _, j := range sound {
		j.Wait(t)
		assert.Empty(t, j.Witness.Verdict(t), "%s on the local disk", j.Client.Name)
		assert.Empty(t, j.Errors(host), "%s on the local disk", j.Client.Name)
	}
}
