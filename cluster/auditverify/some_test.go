package auditverify

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/eventchain"
	"lockfs/raftstore/lockjson"
	"lockfs/raftstore/storepb"
)

// TestFilesOfOneClassHaveNoGaps: the events between theirs are in audit.jsonl.
func TestFilesOfOneClassHaveNoGaps(t *testing.T) {
	first := &storepb.Event{Number: 1, Event: "rule_set"}
	first.Hash = eventchain.Hash(first)
	later := &storepb.Event{Number: 9, Event: "rule_deleted", Before: []byte("of the event before")}
	later.Hash = eventchain.Hash(later)
	text := append(append(append(lockjson.EventLine(first), '\n'), lockjson.EventLine(later)...), '\n')
	dir := t.TempDir()
	for name, problems := range map[string]int{"audit.jsonl": 1, "audit-admin.jsonl": 0, "audit-refusals.jsonl": 0} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, text, 0o600))
		log, err := source{name: path, files: []string{path}}.read(nil)
		require.NoError(t, err)
		require.Len(t, log.problems, problems, name)
	}
}
