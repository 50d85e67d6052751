package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheTokenIsTakenOffTheCommandLine(t *testing.T) {
	const token = "lockfs-client-abc"
	for _, c := range []struct{ given, rest []string }{
		{[]string{"lockfs", "mount", "--token", token, "/locks"}, []string{"lockfs", "mount", "/locks"}},
		{[]string{"lockfs", "mount", "/locks", "--token=" + token}, []string{"lockfs", "mount", "/locks"}},
		{[]string{"lockfs", "up", token}, []string{"lockfs", "up"}},
		{[]string{"lockfs", "server", "--data", "d", "--token", token}, []string{"lockfs", "server", "--data", "d"}},
	} {
		rest, found := withoutToken(c.given)
		require.Equal(t, c.rest, rest)
		require.Equal(t, token, found)
	}
	for _, args := range [][]string{
		{"lockfs"}, {"lockfs", "mount", "/locks"}, {"lockfs", "mount", "--token", "@file", "/locks"}, {"lockfs", "up", "-"},
		{"lockfs", "run", "x.lock", "--", "deploy", "--token", token}, // another program's
	} {
		rest, found := withoutToken(args)
		require.Equal(t, args, rest)
		require.Empty(t, found)
	}
}
