package lookguard

import (
	"iter"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/require"

	"lockfs/raftstore/storepb"
)

// TestWhoAsksIsFoundOutOnlyWhereItMatters: it takes files in /proc to be read, one for each of a family.
func TestWhoAsksIsFoundOutOnlyWhereItMatters(t *testing.T) {
	asked := 0
	family := func(yield func(Process) bool) {
		for i := range 9 {
			if asked++; !yield(Process{PID: 1 + i, Start: 1}) {
				return
			}
		}
	}
	m := New(func(uint32) iter.Seq[Process] { return family })
	caller := fuse.Caller{Pid: 5}
	data := []*storepb.Observation{{Parent: 1, Name: []byte("data"), Token: 7, Data: true}}
	for _, row := range []struct {
		what string
		do   func()
		asks int
	}{
		{"data that is read where nobody has seen a lock", func() { m.Saw(caller, data, Read) }, 0},
		{"a removal when nobody has seen anything", func() { m.SeenBy(5, Name{1, "lock"}) }, 0},
		{"a lock that is read", func() { m.Saw(caller, lockAt(1, "lock", 7), Read) }, 9},
		{"a directory that is listed, in which nobody has seen anything", func() { m.Listed(caller, 2) }, 0},
		{"a directory that is listed", func() { m.Listed(caller, 1) }, 1},
		{"the same again, with nothing new in between", func() { m.Listed(caller, 1) }, 0},
		{"a lock that is read again", func() { m.Saw(caller, lockAt(1, "lock", 7), Read) }, 9},
		{"a directory that is listed again", func() { m.Listed(caller, 1) }, 1},
		{"the same by another thread", func() { m.Listed(fuse.Caller{Pid: 6}, 1) }, 1},
		{"data where there are locks, for it may have been one", func() { m.Saw(caller, data, Read) }, 9},
		{"what is gone of a directory in which nobody has seen anything", func() { m.TookAway(caller, Name{Parent: 2}) }, 0},
	} {
		asked = 0
		row.do()
		require.Equal(t, row.asks, asked, row.what)
	}
}
