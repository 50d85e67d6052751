package setup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestSettingsKeepWhatOthersWrote(t *testing.T) {
	file := filepath.Join(t.TempDir(), "etc", "lockfs.env")
	s, there, err := readSettings(file)
	require.NoError(t, err)
	require.False(t, there)
	s.set("LOCKFS_ROLE", "server")
	s.set("LOCKFS_NONVOTER", "true")
	changed, err := s.write(file)
	require.NoError(t, err)
	require.True(t, changed)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, settingsHead+"LOCKFS_ROLE=server\nLOCKFS_NONVOTER=true\n", string(text))
	require.NoError(t, os.WriteFile(file, append(text, "\n  LOCKFS_MAX_BYTES = \"2 G\"  \n; LOCKFS_ROLE=mount\nnonsense\n"...), 0o644))

	s, there, err = readSettings(file)
	require.NoError(t, err)
	require.True(t, there)
	require.Equal(t, "server", s.get("LOCKFS_ROLE"))
	require.Equal(t, "2 G", s.get("LOCKFS_MAX_BYTES"))
	require.Equal(t, []string{"LOCKFS_ROLE=server", "LOCKFS_NONVOTER=true", "LOCKFS_MAX_BYTES=2 G"}, s.environment())
	s.set("LOCKFS_NONVOTER", "")
	s.set("LOCKFS_ROLE", "server")
	changed, err = s.write(file)
	require.NoError(t, err)
	require.True(t, changed)
	changed, err = s.write(file)
	require.NoError(t, err)
	require.False(t, changed)
	text, err = os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, settingsHead+"LOCKFS_ROLE=server\n\n  LOCKFS_MAX_BYTES = \"2 G\"  \n; LOCKFS_ROLE=mount\nnonsense\n", string(text))
}

func TestTheLastSettingCounts(t *testing.T) {
	s := &settings{lines: []string{"A=1", "B=2", "A=3"}}
	require.Equal(t, "3", s.get("A"))
	s.set("A", "4")
	require.Equal(t, []string{"A=4", "B=2"}, s.lines)
}

func TestSettingsAreQuoted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringOfN(rapid.RuneFrom([]rune("ab/ '\"\\$`#;=%,")), 1, 12, -1).Draw(t, "value")
		if value != strings.TrimSpace(value) {
			value = "x" + value + "x"
		}
		s := new(settings)
		s.set("A", value)
		require.Equal(t, value, s.get("A"), "%q", s.lines)
	})
}
