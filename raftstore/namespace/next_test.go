//go:build next

package namespace

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/storepb"
)

// TestNextNoteIsInSnapshots has the note of the next version, which the program of this version reads in no snapshot. With LOCKFS_MAKE_GOLDEN=1
// it writes the snapshot anew that TestASnapshotOfALaterVersionIsRefused reads.
func TestNextNoteIsInSnapshots(t *testing.T) {
	v := versioned{New(), t}
	require.NotContains(t, string(snapshotBytes(t, v.Snapshot())), "rack 2")
	v.require(storepb.Code_OK, v.do(&storepb.Op{Op: &storepb.Op_SetNote{SetNote: &storepb.SetNote{Text: "rack 2"}}}))
	v.require(storepb.Code_INVALID, v.do(&storepb.Op{Op: &storepb.Op_SetNote{SetNote: &storepb.SetNote{Text: string(make([]byte, maxNote+1))}}}))
	require.Equal(t, "rack 2", v.Query(&storepb.Query{Query: &storepb.Query_GetNote{}}).GetNote())
	written := snapshotBytes(t, v.Snapshot())
	again, err := Restore(bytes.NewReader(written))
	require.NoError(t, err)
	require.Equal(t, v.Hash(), again.Hash())
	require.Equal(t, "rack 2", again.Query(&storepb.Query{Query: &storepb.Query_GetNote{}}).GetNote())
	if os.Getenv("LOCKFS_MAKE_GOLDEN") == "1" {
		require.NoError(t, os.MkdirAll(filepath.Dir(nextSnapshot), 0o755))
		require.NoError(t, os.WriteFile(nextSnapshot, written, 0o644))
	}
}
