package session

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/process"
	"lockfs/raftstore/storepb"
)

// TestANumberIsNoPIDOfStrangers has a number that is the pid of a process with which its writer has nothing to do.
func TestANumberIsNoPIDOfStrangers(t *testing.T) {
	namespace, err := process.Namespace()
	require.NoError(t, err)
	h := &holders{bootID: readBootID(), namespace: namespace, cluster: exactClock{}}
	writer := &storepb.Caller{Pid: uint32(os.Getpid())}
	own := h.describe(writer, nil, []byte(strconv.Itoa(os.Getpid())+"\n"))
	require.Equal(t, storepb.Format_PID, own.GetFormat())
	require.EqualValues(t, os.Getpid(), own.GetProcess().GetPid())
	require.Nil(t, h.describe(writer, nil, []byte("1\n")))
}

// TestAProcessOfAnotherHostIsNotWatched, nor one of another boot, or another pid namespace.
func TestAProcessOfAnotherHostIsNotWatched(t *testing.T) {
	h := &holders{bootID: "boot", namespace: 7}
	id, ok := h.ours(&storepb.Process{Pid: 3, Start: 5, PidNamespace: 7, BootId: "boot"})
	require.True(t, ok)
	require.Equal(t, process.ID{PID: 3, Start: 5}, id)
	for _, other := range []*storepb.Process{
		nil, {Start: 5, PidNamespace: 7, BootId: "boot"}, {Pid: 3, PidNamespace: 8, BootId: "boot"}, {Pid: 3, PidNamespace: 7, BootId: "other"},
	} {
		_, ok := h.ours(other)
		require.False(t, ok, "%v", other)
	}
}

// exactClock is a cluster whose time is this host's.
type exactClock struct{ asker }

func (exactClock) Offset() time.Duration { return 0 }
