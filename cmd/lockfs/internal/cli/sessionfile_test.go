package cli

import (
	"os"
	"path/filepath"
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

// TestServersSessionIsElsewhereIfItCanBe has a server find its session wherever it was begun.
func TestServersSessionIsElsewhereIfItCanBe(t *testing.T) {
	data := t.TempDir()
	link := filepath.Join(data, "mount.session")
	require.Equal(t, link, ServerSessionFile(data))

	file, err := LinkSessionFile(data, "a-1", "/locks")
	require.NoError(t, err)
	if os.Geteuid() == 0 {
		require.Equal(t, "/run/lockfs/a-1,%2Flocks.session", file)
	}
	require.Equal(t, file, ServerSessionFile(data))
	again, err := LinkSessionFile(data, "a-1", "/locks")
	require.NoError(t, err)
	require.Equal(t, file, again)

	if os.Geteuid() != 0 {
		nobodys := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(nobodys, nil, 0o600))
		for _, folder := range []string{nobodys, "", "/proc"} {
			t.Setenv("XDG_RUNTIME_DIR", folder)
			file, err = LinkSessionFile(data, "a-1", "/locks")
			require.NoError(t, err)
			require.Equal(t, link, file, "in place of %q", folder)
			require.Equal(t, link, ServerSessionFile(data))
		}
	}

	require.NoError(t, os.WriteFile(file+".x", nil, 0o600)) // it can be written to
	require.NoError(t, os.Remove(file+".x"))
	require.NoError(t, os.RemoveAll(link))
	require.NoError(t, os.WriteFile(link, nil, 0o600))
	file, err = LinkSessionFile(data, "a-1", "/locks")
	require.NoError(t, err)
	require.Equal(t, link, file, "a session that was begun there stays there")
}

func longName(end string) string {
	name := make([]byte, 300)
	for i := range name {
		name[i] = 'n'
	}
	return string(name) + end
}
