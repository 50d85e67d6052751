package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestProgress(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, make([]byte, 4<<20), 0o600))
	for name, want := range map[string]string{
		"at once": "",
		"later":   "\r1.0 MiB of 4.0 MiB (25%)  \r2.0 MiB of 4.0 MiB (50%)  \r3.0 MiB of 4.0 MiB (75%)  \r4.0 MiB of 4.0 MiB (100%)  \n",
	} {
		var told bytes.Buffer
		began := time.Now()
		now := func() time.Time {
			if name == "later" {
				return began.Add(time.Minute)
			}
			return began
		}
		file, err := os.Open(path)
		require.NoError(t, err)
		reader := ReadWithProgress(file, progress(&told, began.Add(patience), now))
		for range 4 {
			_, err = io.ReadFull(reader, make([]byte, 1<<20))
			require.NoError(t, err)
		}
		_, err = reader.Read(make([]byte, 1))
		require.Equal(t, io.EOF, err)
		require.Equal(t, want, told.String(), name)
		require.NoError(t, file.Close())
	}
	require.Nil(t, Progress(new(bytes.Buffer)), "there is nobody")
}
