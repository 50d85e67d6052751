package consensus

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/codec"
	"lockfs/test/fuzzing"
)

// FuzzIdentity reads anything as the file that says who a server is. What it takes it writes again, and
// reads as the same.
func FuzzIdentity(f *testing.F) {
	dir := f.TempDir()
	id := newIdentity("a", "127.0.0.1:7420")
	require.NoError(f, id.save(dir))
	saved, err := os.ReadFile(filepath.Join(dir, IdentityFile))
	require.NoError(f, err)
	f.Add(saved)
	f.Add([]byte(`{"Version":1000}`))
	f.Add([]byte(`{"Version":0}`))
	fuzzing.Run(f, func(t *testing.T, content []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, IdentityFile), content, 0o600))
		id, err := loadIdentity(dir)
		if err != nil {
			damaged := new(DamagedError)
			require.True(t, errors.As(err, &damaged) || errors.Is(err, codec.ErrNewer) || errors.Is(err, codec.ErrOlder), err)
			return
		}
		require.NoError(t, id.save(dir))
		again, err := loadIdentity(dir)
		require.NoError(t, err)
		require.Equal(t, id, again)
	})
}
