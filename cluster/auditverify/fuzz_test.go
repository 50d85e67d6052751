package auditverify

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/fuzzing"
)

// FuzzLog reads anything as a log. Each line of it is an event or a problem.
func FuzzLog(f *testing.F) {
	kept, err := os.ReadFile("../testdata/version1/data/audit.jsonl")
	require.NoError(f, err)
	f.Add(kept)
	f.Add([]byte(`{"call":1}` + "\n" + `{"number":1,"event":"lock_acquired"}` + "\n\n{"))
	fuzzing.Run(f, func(t *testing.T, content []byte) {
		l := &log{name: "fuzzed", byNumber: make(map[uint64]*line)}
		require.NoError(t, l.readFile("file", bytes.NewReader(content)))
		lines := bytes.Count(content, []byte("\n"))
		sound := 0
		for _, one := range l.lines {
			if one.sound {
				sound++
			}
		}
		require.GreaterOrEqual(t, sound+len(l.problems), lines)
		require.Equal(t, len(content) > 0 && content[len(content)-1] != '\n', l.torn)
		l.checkOrder()
		_ = l.cluster()
	})
}
