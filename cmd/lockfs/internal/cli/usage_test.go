package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHelpWrapsParagraphsAndListsAndLeavesCommands(t *testing.T) {
	text := `Acquire a lock, run
a command and release the lock.

  lockfs run /locks/nightly.lock ./backup.sh --and more

  --wait D  how long to
            wait for the lock
  125       a failure

- a word`
	require.Equal(t, `Acquire a lock,
run a command and
release the lock.

  lockfs run /locks/nightly.lock ./backup.sh --and more

  --wait D  how
            long
            to
            wait
            for
            the
            lock
  125       a
            failure

- a word`, wrapText(text, 17))
	require.Equal(t, "Acquire a lock, run a command and release the lock.", wrapText("Acquire a lock, run\na command and\nrelease the lock.", 60))
	require.Equal(t, "averylongword", wrapText("averylongword", 5))
}

func TestExamplesBreakOnlyWhereAShellGoesOn(t *testing.T) {
	require.Equal(t, "  lockfs run a.lock \\\n      --wait 10m \\\n      -- cmd", wrapExamples("  lockfs run a.lock --wait 10m -- cmd", 22))
	require.Equal(t, "  lockfs x 'a --b --c'", wrapExamples("  lockfs x 'a --b --c'", 15), "not within quotes")
	require.Equal(t, "  lockfs x # of a --b", wrapExamples("  lockfs x # of a --b", 15), "not within a comment")
	require.Equal(t, "  lockfs backup - \\\n      | ssh b cat", wrapExamples("  lockfs backup - | ssh b cat", 22))
	require.Equal(t, "  short", wrapExamples("  short", 22))
}
