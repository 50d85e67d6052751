package testcluster

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

func TestShell(t *testing.T) {
	t.Parallel()
	net := hosts.New(t)
	for _, c := range []struct {
		shell       *Shell
		good, fails string
	}{
		{StartShell(t, net.Host("a"), net.Dir()), `kept=1; echo one; echo two >&2`, `echo $kept; cat missing`},
		{StartPython(t, net.Host("a"), net.Dir()), `kept = 1; print("one"); print("two")`, `print(kept); open("missing")`},
	} {
		require.Equal(t, "one\ntwo\n", c.shell.Must(c.good))
		output, err := c.shell.Do(c.fails)
		require.Equal(t, "1\n", output[:2])
		require.ErrorContains(t, err, "No such file")
		require.Equal(t, "one\ntwo\n", c.shell.Must(c.good))
	}
}
