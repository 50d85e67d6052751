package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSessionFilesOfDifferentMountsDiffer(t *testing.T) {
	seen := make(map[string]string)
	for _, m := range []struct{ host, dir string }{
		{"h", "/a-b"}, {"h", "/a/b"}, {"h-a", "/b"}, {"h", "/a,b"}, {"h,%2Fa", "/b"}, {"h", "/a%2Fb"}, {"h/x", "/y"},
		{"h", "/" + longName("x")}, {"h", "/" + longName("y")},
	} {
		name := sessionFileName(m.host, m.dir)
		require.Empty(t, seen[name], "%v has the name of another: %s", m, name)
		require.NotContains(t, name, "/")
		require.LessOrEqual(t, len(name), 240)
		seen[name] = m.dir
	}
	require.Equal(t, "h,%2Fa%2Fb.session", sessionFileName("h", "/a/b"))
}

func longName(end string) string {
	name := make([]byte, 300)
	for i := range name {
		name[i] = 'n'
	}
	return string(name) + end
}
