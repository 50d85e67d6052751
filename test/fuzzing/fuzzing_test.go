package fuzzing

import (
	"bytes"
	"math/rand/v2"
	"os"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWhatIsKeptIsChanged has each byte of an input changed sooner or later, and the input itself left alone.
func TestWhatIsKeptIsChanged(t *testing.T) {
	content, text := []byte(`{"pid": 1}`), "two"
	m := &mutator{random: rand.New(rand.NewPCG(1, 2)), kept: [][]reflect.Value{
		{reflect.ValueOf(content), reflect.ValueOf(text), reflect.ValueOf(true)},
		{reflect.ValueOf([]byte{}), reflect.ValueOf(""), reflect.ValueOf(false)},
	}}
	seen := make(map[string]bool)
	changed := make([]bool, len(content))
	for n := range 20_000 {
		input := m.change(m.kept[n%2])
		require.Len(t, input, 3)
		b := input[0].Bytes()
		seen[string(b)] = true
		if n%2 == 0 && len(b) == len(content) {
			for i := range b {
				changed[i] = changed[i] || b[i] != content[i]
			}
		}
		_, _ = input[1].String(), input[2].Bool()
	}
	require.True(t, bytes.Equal(content, []byte(`{"pid": 1}`)))
	require.NotContains(t, changed, false)
	require.Greater(t, len(seen), 2000)
}

// TestWhatIsFoundIsKept is for the file that go test reads.
func TestWhatIsFoundIsKept(t *testing.T) {
	t.Chdir(t.TempDir())
	m := &mutator{name: "FuzzX"}
	path := m.keep([]reflect.Value{reflect.ValueOf([]byte("a\x00\xff\"")), reflect.ValueOf("b\n"), reflect.ValueOf(true)})
	require.FileExists(t, path)
	require.Equal(t, "go test fuzz v1\n[]byte(\"a\\x00\\xff\\\"\")\nstring(\"b\\n\")\nbool(true)\n", read(t, path))
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(content)
}
