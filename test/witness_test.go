package test

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
