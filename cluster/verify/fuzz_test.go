package verify

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/lockjson"
	"lockfs/test/fuzzing"
)

// FuzzLog reads anything as a log. Each line of it is an event, a recorded call, or a problem.
func FuzzLog(f *testing.F) {
	kept, err := os.ReadFile("../testdata/version1/data/audit.jsonl")
	require.NoError(f, err)
	f.Add(kept)
	f.Add([]byte(`{"call":1}` + "\n" + `{"number":1,"event":"lock_acquired"}` + "\n\n{"))
	fuzzing.Run(f, func(t *testing.T, content []byte) {
		l, calls := &log{name: "fuzzed", byNumber: make(map[uint64]*line)}, 0
		require.NoError(t, l.readFile("file", bytes.NewReader(content), func(*lockjson.Call) { calls++ }))
		lines := bytes.Count(content, []byte("\n"))
		sound := 0
		for _, one := range l.lines {
			if one.sound {
				sound++
			}
		}
		require.GreaterOrEqual(t, calls+sound+len(l.problems), lines)
		require.Equal(t, len(content) > 0 && content[len(content)-1] != '\n', l.torn)
		l.checkOrder()
		_ = l.cluster()
	})
}
