package control

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNodeTable(t *testing.T) {
	table := newNodeTable()
	a, b := mirrorFile{kvView, 1, "a", 2}, mirrorFile{kvView, 1, "a", 3}
	id := table.use(a)
	require.NotEqual(t, id, table.use(b))
	require.Equal(t, id, table.use(a))
	require.Equal(t, a, table.get(id))
	table.forget(id, 1)
	require.Equal(t, a, table.get(id))
	table.forget(id, 7)
	require.Nil(t, table.get(id))
	table.forget(id, 1)
	require.NotEqual(t, id, table.use(a), "a number is never used again")
}
