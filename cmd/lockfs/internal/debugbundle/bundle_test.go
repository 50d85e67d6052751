package debugbundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRedact(t *testing.T) {
	for text, want := range map[string]string{
		"nothing of note": "nothing of note",
		"-----BEGIN PRIVATE KEY-----\nAA\n-----END PRIVATE KEY-----\nrest": "REDACTED\nrest",
		"-----BEGIN LOCKFS SEAL KEY-----\nAA":                              "REDACTED",
		"-----BEGIN CERTIFICATE-----\nAA\n-----END CERTIFICATE-----":       "-----BEGIN CERTIFICATE-----\nAA\n-----END CERTIFICATE-----",
		"up lockfs-server-AbCdEfGhIjKlMnOpQr_-12 ok":                       "up lockfs-server-REDACTED ok",
		"lockfs-server-a.sock":                                             "lockfs-server-a.sock",
		`{"token":"s3cret","token":17}`:                                    `{"token":"REDACTED","token":17}`,
		"LOCKFS_JOIN_TOKEN=s3cret mount":                                   "LOCKFS_JOIN_TOKEN=REDACTED mount",
		"--token s3cret --mount /locks":                                    "--token REDACTED --mount /locks",
		"--token=s3cret":                                                   "--token=REDACTED",
		"password: hunter2, user: anne":                                    "password: REDACTED, user: anne",
		"Authorization: Bearer abc.def":                                    "Authorization: Bearer REDACTED",
		`msg=released owner="abc" token=99`:                                `msg=released owner="REDACTED" token=99`,
		"seal_key='abc'":                                                   "seal_key='REDACTED'",
	} {
		require.Equal(t, want, string(redact([]byte(text))), text)
	}
}

func TestEventsWithoutWhatLocksSay(t *testing.T) {
	got, err := harmlessEvents([]byte(`{"number":1,"event":"lock_acquired","timestamp":"2026-01-02T03:04:05Z","lock_path":"/a","holder":"SECRET","host":"SECRET","pid":3,"by":{"host":"h"},"reason":"SECRET","previous_lock":{"holder":"SECRET"}}
{"number":2,"event":"host_back","timestamp":"2026-01-02T03:04:05Z","host":"h1"}
`))
	require.NoError(t, err)
	require.Equal(t, `{"by":{"host":"h"},"event":"lock_acquired","lock_path":"/a","number":1,"timestamp":"2026-01-02T03:04:05Z"}
{"event":"host_back","host":"h1","number":2,"timestamp":"2026-01-02T03:04:05Z"}
`, string(got))
	_, err = harmlessEvents([]byte("x\n"))
	require.Error(t, err)
}

func TestOnlyMountsOfFUSE(t *testing.T) {
	require.Equal(t, "9 2 0:3 / /locks rw - fuse.lockfs a rw,user_id=0\n",
		fuseMounts("8 2 0:2 / /share rw - cifs //a/b rw,password=x\n9 2 0:3 / /locks rw - fuse.lockfs a rw,user_id=0\n"))
}

// TestSizesOpenNothing: of the files of a data directory there are only names and sizes.
func TestSizesOpenNothing(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "identity"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "identity", "host.key"), []byte("SECRET"), 0o600))
	c := &collection{name: "b", made: time.Now()}
	c.sizes("data.txt", dir)
	c.sizes("none.txt", filepath.Join(dir, "none"))
	c.lack("log.txt", errors.New("no token=SECRET\nsecond line"))
	var out bytes.Buffer
	require.NoError(t, c.write(&out))
	files := unpack(t, &out)
	require.Regexp(t, ` 6  identity/host.key\n`, files["b/data.txt"])
	require.Contains(t, files["b/missing.txt"], "log.txt: no token=REDACTED\nnone.txt: ")
	for _, content := range files {
		require.NotContains(t, content, "SECRET")
	}
}

func TestAFileThatIsNotWholeIsNotLeft(t *testing.T) {
	p := &plan{name: "b"}
	path := filepath.Join(t.TempDir(), "b.tar.gz")
	require.NoError(t, os.WriteFile(path, []byte("mine"), 0o600))
	_, err := p.writeFile(t.Context(), path)
	require.ErrorIs(t, err, os.ErrExist)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "mine", string(content))
}

func unpack(t testing.TB, from io.Reader) map[string]string {
	t.Helper()
	zipped, err := gzip.NewReader(from)
	require.NoError(t, err)
	files := map[string]string{}
	for archive := tar.NewReader(zipped); ; {
		header, err := archive.Next()
		if err == io.EOF {
			return files
		}
		require.NoError(t, err)
		content, err := io.ReadAll(archive)
		require.NoError(t, err)
		files[header.Name] = string(content)
	}
}
