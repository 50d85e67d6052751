package session

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMachineIDIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "not", "there", "machine-id")
	ids := make(chan string)
	for range 8 {
		go func() {
			id, err := makeMachineID(path)
			if err != nil {
				id = err.Error()
			}
			ids <- id
		}()
	}
	kept, err := "", error(nil)
	for range 8 {
		id := <-ids
		kept, err = readMachineID(path)
		require.NoError(t, err)
		require.Equal(t, kept, id, "all have one id")
	}
	names, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, names, 1, "nothing else is left")
	require.NoError(t, os.WriteFile(path, []byte("uninitialized\n"), 0o644))
	_, err = readMachineID(path)
	require.ErrorContains(t, err, "32 hexadecimal digits")
}
