package lockfact

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIsTemporary(t *testing.T) {
	require.NotEqual(t, TemporaryName(), TemporaryName())
	for _, name := range []string{TemporaryName(), "deploy.lock.0123456789abcdef.tmp"} {
		require.True(t, IsTemporary(name), name)
	}
	for _, name := range []string{
		"", "deploy.lock", ".lockfs", ".lockfs-", ".lockfs-mine", "a" + TemporaryName(), TemporaryName() + "A", "deploy.lock.tmp",
		"deploy.lock.0123456789abcdeF.tmp", "deploy.0123456789abcdef.tmp", "deploy.lock.0123456789abcdef.tmp.lock",
	} {
		require.False(t, IsTemporary(name), name)
	}
}
