package raftstore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// TestRemovalsAreListedFromAnyNumberOn that is kept still, in their order.
func TestRemovalsAreListedFromAnyNumberOn(t *testing.T) {
	r := newRemovals()
	removal := func(n int) namespace.Removal { return namespace.Removal{Parent: ids.Inode(n)} }
	var all []namespace.Removal
	for n := range keptRemovals + 100 {
		all = append(all, removal(n))
		news := make(chan struct{})
		r.news = news
		r.add(nil)
		require.NotNil(t, r.news, "there is none")
		r.add(all[n:])
		<-news
		require.Nil(t, r.news)
		if n == 2 {
			require.Equal(t, all, r.since(0))
			require.Equal(t, all[2:], r.since(2))
			require.Empty(t, r.since(3))
		}
	}
	last := len(all)
	require.Equal(t, all[last-keptRemovals:], r.since(0))
	require.Equal(t, all[last-keptRemovals:], r.since(uint64(last-keptRemovals)))
	require.Equal(t, all[last-keptRemovals+1:], r.since(uint64(last-keptRemovals+1)))

	fsm := NewFSM(namespace.New(), "self", func(error) {})
	fsm.removals.add(all[:3])
	epoch := fsm.removals.epoch
	list := func(epoch, after uint64) []namespace.Removal {
		found, now, last := fsm.Removals(t.Context(), epoch, after)
		require.Equal(t, fsm.removals.epoch, now)
		require.EqualValues(t, 3, last)
		return found
	}
	require.Equal(t, all[1:3], list(epoch, 1))
	require.Empty(t, list(epoch+1, 1), "another replica counts otherwise")
	require.Empty(t, list(epoch, 4), "as does one that has heard of less")
}

// TestSoonerTellsWhenLessTimeIsLeft until something is due, and of nothing else.
func TestSoonerTellsWhenLessTimeIsLeft(t *testing.T) {
	a := newAwaited(t)
	told := func() bool {
		select {
		case <-a.Sooner():
			return true
		default:
			return false
		}
	}
	create := func(name string) *storepb.Result {
		return a.do(anna, &storepb.Op{Op: &storepb.Op_Create{Create: &storepb.Create{
			Parent: namespace.RootIno, Name: []byte(name), Mode: someFile, Exclusive: true,
		}}})
	}
	ino := create("x.lock").GetAttr().GetIno()
	told() // what is due as it begins
	write := func(expires int64) {
		version := a.ns.Query(&storepb.Query{Query: &storepb.Query_GetAttr{GetAttr: &storepb.GetAttr{Ino: ino}}}).GetAttr().GetVersion()
		require.Equal(t, storepb.Code_OK, a.do(anna, &storepb.Op{Op: &storepb.Op_SetContent{SetContent: &storepb.SetContent{
			Ino: ino, IfVersion: version, Content: []byte("lock"), Facts: &storepb.Facts{
				Format: storepb.Format_TOWER, Holder: "anna", Host: "1", IssuedAt: 1, ExpiresAt: expires, OnStale: storepb.OnStale_REMOVE,
			},
		}}}).GetCode())
	}
	write(1_000)
	require.True(t, told())
	write(2_000)
	require.False(t, told(), "that is later")
	create("other")
	require.False(t, told())
	write(1_500)
	require.True(t, told())
}
