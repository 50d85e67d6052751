package setup

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/fuzzing"
)

// FuzzSettings reads a file that people may have written, and sets a variable in it: that is what it says then, and all else is as before.
func FuzzSettings(f *testing.F) {
	f.Add(settingsHead, "LOCKFS_MOUNT", "/locks")
	f.Add("A=1\n; no\nA='2'\n B = \"x\\\"y\" \n", "A", "a $b \"c\"\\")
	f.Add("A=1\nA=2\nB=3", "A", "")
	dir := f.TempDir()
	fuzzing.Run(f, func(t *testing.T, content, name, value string) {
		if name = strings.Trim(name, " =#;'\"\n\r\t"); name == "" || strings.ContainsAny(name+value, "=\n\r\x00") || name != strings.TrimSpace(name) || value != strings.TrimSpace(value) {
			return // no variable of ours
		}
		s := &settings{lines: strings.Split(strings.TrimSuffix(content, "\n"), "\n")}
		before := others(s, name)
		s.set(name, value)
		file := filepath.Join(dir, "settings")
		_, err := s.write(file)
		require.NoError(t, err)
		read, there, err := readSettings(file)
		require.NoError(t, err)
		require.True(t, there)
		require.Equal(t, value, read.get(name))
		require.Equal(t, before, others(read, name))
	})
}

func others(s *settings, name string) (variables []string) {
	for _, variable := range s.environment() {
		if !strings.HasPrefix(variable, name+"=") {
			variables = append(variables, variable)
		}
	}
	return variables
}
