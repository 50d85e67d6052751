package fusefs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/require"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// pinning is an Operator that knows for which inode Pin and Unpin are under way. Unpin waits until the test lets it go on.
type pinning struct {
	Operator
	unpin chan error // the result of each

	mu       sync.Mutex
	underWay map[uint64]int
	pinned   map[uint64]bool
	did      []string
	overlap  bool
}

func newPinning() *pinning {
	return &pinning{unpin: make(chan error), underWay: make(map[uint64]int), pinned: make(map[uint64]bool)}
}

func (p *pinning) Mutate(_ context.Context, _ *storepb.Caller, op *storepb.Op) (*storepb.Result, error) {
	ino := max(op.GetPin().GetIno(), op.GetUnpin().GetIno())
	p.mu.Lock()
	p.underWay[ino]++
	p.overlap = p.overlap || p.underWay[ino] > 1
	p.mu.Unlock()
	var err error
	if op.GetUnpin() != nil {
		err = <-p.unpin
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.underWay[ino]--
	if err != nil {
		return nil, err
	}
	p.pinned[ino] = op.GetPin() != nil
	p.did = append(p.did, fmt.Sprintf("%T", op.GetOp()))
	return new(storepb.Result), nil
}

// TestUnpinAndPinOfAnInodeAreInOrder: a data file that another host removed is opened again while Unpin of the last close is under way.
// The cluster keeps it until it is closed again.
func TestUnpinAndPinOfAnInodeAreInOrder(t *testing.T) {
	const ino = 7
	for _, row := range []struct {
		name      string
		failed    bool // the first Unpin
		reopened  bool
		meanwhile func(fs *fileSystem)
		pinned    bool
	}{
		{name: "closed"},
		{name: "opened again", reopened: true, pinned: true},
		{name: "opened again, and the cluster could not be told of the close", failed: true, reopened: true, pinned: true},
		{name: "opened again, and another removal feed tells of it", reopened: true, pinned: true, meanwhile: func(fs *fileSystem) { fs.keepUnnamed(ino) }},
		{name: "removed again by an operation of unknown outcome", meanwhile: func(fs *fileSystem) {
			fs.mayHaveRemoved(new(storepb.Caller), nil, ino)
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ops := newPinning()
				fs := newFileSystem(ops, Options{})
				fs.unnamed.add(ino)
				open := func() *inode {
					in := fs.inodes.use(ids.Inode(ino))
					fs.opened(fs.files.Reserve(), &fileHandle{inode: in}, new(fuse.OpenOut))
					synctest.Wait()
					return in
				}
				first := open()
				require.True(t, ops.pinned[ino])
				go fs.release(new(storepb.Caller), first)
				synctest.Wait()
				require.Equal(t, 1, ops.underWay[ino])
				var again *inode
				if row.reopened {
					again = open()
				}
				if row.meanwhile != nil {
					row.meanwhile(fs)
					synctest.Wait()
				}
				if row.failed {
					ops.unpin <- errors.New("no quorum")
				}
				ops.unpin <- nil
				synctest.Wait()
				for !row.pinned && ops.underWay[ino] > 0 {
					ops.unpin <- nil
					synctest.Wait()
				}
				require.Equal(t, row.pinned, ops.pinned[ino], "%v", ops.did)
				if again != nil {
					go fs.release(new(storepb.Caller), again)
					ops.unpin <- nil
					synctest.Wait()
				}
				require.False(t, ops.pinned[ino], "%v", ops.did)
				require.False(t, ops.overlap, "%v", ops.did)
				require.False(t, fs.inodes.isUsed(ino))
				require.Empty(t, fs.inodes.byIno)
			})
		})
	}
}
