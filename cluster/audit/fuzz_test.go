package audit

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/fuzzing"
)

// FuzzOpen opens a file that has anything in it, as after a power cut, and goes on with it. Nothing of it is lost but what is no whole line, and that is kept
// beside it if there is a whole line in it.
func FuzzOpen(f *testing.F) {
	three := []byte(text(events(1, 2, 3)))
	f.Add(three)
	f.Add(three[:len(three)-3])
	f.Add(append(bytes.Clone(three), make([]byte, 20)...))
	f.Add(append(append(bytes.Clone(three), "{\x00\n"...), three...))
	f.Add([]byte("{\"number\":18446744073709551615}\n"))
	f.Add([]byte("somebody else's\n"))
	dir := f.TempDir()
	fuzzing.Run(f, func(t *testing.T, content []byte) {
		path := filepath.Join(dir, "audit.jsonl")
		_ = os.Remove(path + cutSuffix)
		require.NoError(t, os.WriteFile(path, content, 0o600))
		last, err := settle(path, slog.New(slog.DiscardHandler))
		settled, readErr := os.ReadFile(path)
		require.NoError(t, readErr)
		require.True(t, bytes.HasPrefix(content, settled))
		if err != nil {
			require.Equal(t, content, settled, "what is somebody else's stays as it is")
			return
		}
		if gone := content[len(settled):]; bytes.IndexByte(gone, '\n') >= 0 {
			kept, err := os.ReadFile(path + cutSuffix)
			require.NoError(t, err)
			require.Equal(t, gone, kept)
		}
		again, err := settle(path, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		require.Equal(t, last, again)
		if last == 1<<64-1 {
			return
		}
		_, err = newer([]Line{event(last + 1)}, last)
		require.NoError(t, err, "the next one follows")
	})
}
