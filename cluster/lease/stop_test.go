package lease

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/ids"
)

func TestAStoppedTableGrantsNothing(t *testing.T) {
	table := leading()
	first := give(t, table, here, 0)
	give(t, table, there, Duration/2)
	lasts, resigned := table.Stop(1, Duration/2)
	require.True(t, resigned)
	require.Equal(t, Duration, lasts, "the one that lasts longest")
	table.Resume(1)
	require.False(t, table.Extend(here, first, Duration/2), "somebody relies on it")
	_, granted := table.Grant(Request{Holder: here}, file, Duration/2)
	require.False(t, granted)
	lasts, resigned = table.Stop(1, Duration)
	require.True(t, resigned, "whoever asks again")
	require.Equal(t, Duration/2, lasts)

	table.Begin(3)
	give(t, table, here, 2*Duration)
	for _, other := range []ids.Term{0, 1, 2, 4} {
		_, resigned = table.Stop(other, 2*Duration)
		require.False(t, resigned, "term %d", other)
	}
	require.NotZero(t, give(t, table, there, 2*Duration))
}

func TestATableThatWasNotStartedCannotBeStopped(t *testing.T) {
	_, resigned := NewTable().Stop(0, 0)
	require.False(t, resigned)
}

func TestAPauseEnds(t *testing.T) {
	table := leading()
	generation := give(t, table, here, 0)
	lasts, paused := table.Pause(1, Duration/4)
	require.True(t, paused)
	require.Equal(t, 3*Duration/4, lasts)
	require.False(t, table.Extend(here, generation, Duration/4))
	table.Resume(2)
	require.False(t, table.Extend(here, generation, Duration/4))
	table.Resume(1)
	require.True(t, table.Extend(here, generation, Duration/4))
}
