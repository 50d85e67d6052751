package process

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMachineID(t *testing.T) {
	path := filepath.Join(t.TempDir(), "machine-id")
	_, err := machineID(path)
	require.ErrorIs(t, err, fs.ErrNotExist)
	idOf := func(content string) (string, error) {
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return machineID(path)
	}
	for _, content := range []string{"0123456789abcdef0123456789abcdef", "0123456789abcdef0123456789abcdef\n"} {
		id, err := idOf(content)
		require.NoError(t, err)
		// printf lockfs:0123456789abcdef0123456789abcdef | sha256sum | head -c 32
		require.Equal(t, "cd63185bda760cf4c34a0675b81fdb92", id)
	}
	for _, content := range []string{
		"", "\n", "uninitialized\n", "0123456789abcdef0123456789abcde", "0123456789abcdef0123456789abcdef0",
		"0123456789abcdef0123456789abcdeg", "0123456789abcdef0123456789abcdef00", "0123456789abcdef 0123456789abcde",
	} {
		_, err := idOf(content)
		require.Error(t, err, content)
	}
}
