package trust

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/digest"
)

func TestAClusterKnowsForWhichItGoesOn(t *testing.T) {
	table := New(digest.New())
	table.SetCluster("one")
	table.Rebase("two", false)
	frozen := table.Frozen()
	table.Rebase("three", true)
	for id, goesOn := range map[string]bool{"one": true, "two": true, "three": false, "other": false, "": false} {
		require.Equal(t, goesOn, table.GoesOnFor(id), id)
	}
	require.Equal(t, []string{"one"}, frozen.Earlier())
}
