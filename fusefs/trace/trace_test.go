package trace

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/lockjson"
	"lockfs/raftstore/storepb"
)

func tell(c *Calls, name string) {
	c.Tell(&lockjson.Call{Call: lockjson.CallMake, Name: name}, c.Begin(), &storepb.MountStatus{Host: "h", ClusterAhead: int64(time.Hour), AheadWithin: 7})
}

func read(t *testing.T, r *Reader) (calls []*lockjson.Call) {
	t.Helper()
	var all []byte
	for data := r.Read(100); len(data) > 0; data = r.Read(100) {
		all = append(all, data...)
	}
	for line := range bytes.Lines(all) {
		call, err := lockjson.ParseCallLine(line)
		require.NoError(t, err)
		calls = append(calls, call)
	}
	return calls
}

func TestEachReaderGetsWhatEndsWhileItIsOpen(t *testing.T) {
	c := new(Calls)
	require.False(t, c.On())
	a := c.Open(nil)
	require.True(t, c.On())
	tell(c, "x")
	b := c.Open(a.Unread())
	tell(c, "y")
	<-a.News()
	for _, r := range []*Reader{a, b} {
		calls := read(t, r)
		require.Len(t, calls, 2)
		require.Equal(t, "x", calls[0].Name)
		require.Equal(t, "h", calls[1].Host)
		require.NotEmpty(t, calls[1].Boot)
		require.LessOrEqual(t, calls[1].BootBegin, calls[1].BootEnd)
		require.EqualValues(t, int64(time.Hour)+calls[1].BootEnd, calls[1].End.UnixNano())
		require.Equal(t, clusterClocks+7, calls[1].Within)
	}
	a.Close()
	require.True(t, c.On())
	b.Close()
	require.False(t, c.On())
}

func TestASlowReaderIsToldWhatItMissed(t *testing.T) {
	c := new(Calls)
	r := c.Open(bytes.Repeat([]byte("\n"), most-1))
	defer r.Close()
	tell(c, "lost")
	tell(c, "lost too")
	require.Len(t, r.Read(most), most-1)
	tell(c, "here")
	calls := read(t, r)
	require.Len(t, calls, 2)
	require.Equal(t, lockjson.CallLost, calls[0].Call)
	require.EqualValues(t, 2, calls[0].Lost)
	require.Equal(t, "here", calls[1].Name)
}
