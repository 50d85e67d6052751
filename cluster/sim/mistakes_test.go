//go:build mutants

package sim

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/ledger"
	"lockfs/test/mutants/mutant"
)

// mistakes are those of test/mutants/faults that show below a mount, by which worlds show them.
var mistakes = map[string]string{
	"no-dedup": "TestWorlds", "ignore-cancel": "TestWorlds", "apply-clock": "TestWorlds", "unverified-reads": "TestWorlds",
	"late-keepalives": "TestWorlds", "serve-gone": "TestLockWorlds",
}

// TestMistakesAreSeen makes each of them, in a process of its own, and requires that some world shows it.
func TestMistakesAreSeen(t *testing.T) {
	simulate := func(t *testing.T, worlds, mistake, during string) (string, error) {
		command := exec.Command(os.Args[0], "-test.run=^"+worlds+"$", "-test.v", "-sim.from=1", "-sim.for="+during)
		command.Env = append(os.Environ(), mutant.Variable+"="+mistake, ledger.Variable+"=")
		said, err := command.CombinedOutput()
		return string(said), err
	}
	t.Run("none", func(t *testing.T) {
		for _, worlds := range []string{"TestWorlds", "TestLockWorlds"} {
			said, err := simulate(t, worlds, "", "5s")
			require.NoError(t, err, said)
		}
	})
	for mistake, worlds := range mistakes {
		t.Run(mistake, func(t *testing.T) {
			began := time.Now()
			said, err := simulate(t, worlds, mistake, "1m")
			require.Error(t, err, "it is not seen: %s", said)
			_, seen, found := strings.Cut(said, ": seed ")
			require.True(t, found, said)
			seen, _, _ = strings.Cut(seen, "\n")
			t.Logf("seen after %v: seed %s", time.Since(began).Round(100*time.Millisecond), seen)
		})
	}
}
