package fuseattr

import (
	"math"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/require"

	"lockfs/raftstore/storepb"
)

// TestTheKernelKeepsNothing of what it is told: another host may have changed it.
func TestTheKernelKeepsNothing(t *testing.T) {
	var told fuse.EntryOut
	FillEntry(&told, &storepb.Attr{Ino: 7})
	require.EqualValues(t, 7, told.NodeId)
	require.Zero(t, told.EntryTimeout())
	require.Zero(t, told.AttrTimeout())
}

func TestKernelTimes(t *testing.T) {
	for _, ns := range []int64{0, 1, -1, 1_500_000_000_999_999_999, -1_500_000_000_999_999_999} {
		sec, nsec := kernelTime(ns)
		require.Less(t, nsec, uint32(1e9))
		require.Equal(t, ns, *Nanoseconds(sec, nsec))
	}
	require.EqualValues(t, math.MaxInt64, *Nanoseconds(1<<40, 5))
	beforeAll := int64(-1 << 40)
	require.EqualValues(t, math.MinInt64, *Nanoseconds(uint64(beforeAll), 5))
}
