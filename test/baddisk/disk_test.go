package baddisk

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

func TestMain(m *testing.M) {
	hosts.Main()
	Main()
	os.Exit(m.Run())
}

// TestADiskObeys has a program write to a disk that is good, fails, is slow and is good again.
func TestADiskObeys(t *testing.T) {
	t.Parallel()
	net := hosts.New(t)
	h := net.Host("a")
	directory, at, obeys := filepath.Join(net.Dir(), "directory"), filepath.Join(net.Dir(), "disk"), filepath.Join(net.Dir(), "obeys")
	for _, dir := range []string{directory, at} {
		require.NoError(t, os.Mkdir(dir, 0o755))
	}
	self, err := os.Executable()
	require.NoError(t, err)
	disk := h.Start(self, Args(directory, at, obeys)...)
	require.NoError(t, disk.WaitOutput(Ready))
	write := func(text string) (string, error) {
		return h.Run("sh", "-c", `printf %s "$1" | dd of="$2/file" conv=fsync 2>&1`, "sh", text, at)
	}
	tell := func(what string) { require.NoError(t, os.WriteFile(obeys, []byte(what), 0o644)) }

	_, err = write("first")
	require.NoError(t, err)
	tell(Bad)
	said, err := write("second")
	require.Error(t, err)
	require.Contains(t, said, "Input/output error")
	const delay = 200 * time.Millisecond
	tell(delay.String())
	began := time.Now()
	_, err = write("third")
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(began), 2*delay, "a write, and fsync")
	tell(Good)
	require.Equal(t, "third", h.MustRun(t, "cat", filepath.Join(at, "file")))
	text, err := os.ReadFile(filepath.Join(directory, "file"))
	require.NoError(t, err)
	require.Equal(t, "third", string(text))
}
