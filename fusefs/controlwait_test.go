package fusefs

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/require"

	"lockfs/raftstore/storepb"
)

// waitDir looks names up in .lockfs/wait as the kernel does.
type waitDir struct {
	*control
	s  *session
	id uint64
}

func newWaitDir() *waitDir {
	s := newCluster().open()
	c := newControl(newFileSystem(s, Options{}))
	return &waitDir{control: c, s: s, id: c.nodes.use(mirrorDir{waitView, 1})}
}

func (d *waitDir) lookup(t *testing.T, name string) *fuse.EntryOut {
	t.Helper()
	out := new(fuse.EntryOut)
	require.Equal(t, fuse.OK, d.Lookup(nil, &fuse.InHeader{NodeId: d.id}, name, out))
	return out
}

func (d *waitDir) open(node uint64) fuse.Status {
	in := &fuse.OpenIn{InHeader: fuse.InHeader{NodeId: node, Caller: fuse.Caller{Owner: fuse.Owner{Uid: 1234, Gid: 1234}}}}
	return d.Open(nil, in, new(fuse.OpenOut))
}

// TestWhateverIsAskedForFreeNamesNeedsNoMemory: the kernel may remember as many as it likes.
func TestWhateverIsAskedForFreeNamesNeedsNoMemory(t *testing.T) {
	d := newWaitDir()
	d.lookup(t, "free")
	before := len(d.nodes.known)
	for i := range 100 {
		d.lookup(t, fmt.Sprint(i))
	}
	require.Len(t, d.nodes.known, before)
}

// TestWhatIsNotKnownOfALockIsNotEverybodys: while the cluster does not answer nobody can tell who may wait for it.
func TestWhatIsNotKnownOfALockIsNotEverybodys(t *testing.T) {
	d := newWaitDir()
	create := &storepb.Create{Parent: 1, Name: []byte("lock"), Mode: syscall.S_IFREG | 0o600, Exclusive: true}
	result, err := d.s.Mutate(t.Context(), new(storepb.Caller), &storepb.Op{Op: &storepb.Op_Create{Create: create}})
	require.NoError(t, err)
	require.Equal(t, storepb.Code_OK, result.GetCode())
	lock := d.lookup(t, "lock")
	require.EqualValues(t, 0o400, lock.Mode&0o777)
	d.s.intercept(func(*storepb.Op, *storepb.Query) (*storepb.Result, bool, error) {
		return nil, true, context.DeadlineExceeded
	})
	require.Equal(t, fuse.Status(syscall.ETIMEDOUT), d.GetAttr(nil, &fuse.GetAttrIn{InHeader: fuse.InHeader{NodeId: lock.NodeId}}, new(fuse.AttrOut)))
	require.Equal(t, fuse.Status(syscall.ETIMEDOUT), d.open(lock.NodeId))
}

// speechless does not answer what becomes of a lock.
type speechless struct {
	*session
	asked chan struct{}
}

func (s speechless) Query(ctx context.Context, query *storepb.Query) (*storepb.Result, error) {
	if query.GetGetLock() == nil {
		return s.session.Query(ctx, query)
	}
	s.asked <- struct{}{}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(8 * time.Second):
		return nil, context.DeadlineExceeded
	}
}

// TestWhoWaitsIsEndedWhileTheClusterIsSilent at once, as anybody who waits.
func TestWhoWaitsIsEndedWhileTheClusterIsSilent(t *testing.T) {
	dir, ops := t.TempDir(), speechless{newCluster().open(), make(chan struct{}, 1)}
	mountAt(t, dir, ops, Options{})
	shell(t, dir, "set -C; echo mine > lock")
	cat := exec.Command("cat", filepath.Join(dir, ".lockfs/wait/lock"))
	require.NoError(t, cat.Start())
	<-ops.asked
	began := time.Now()
	require.NoError(t, cat.Process.Kill())
	require.Error(t, cat.Wait())
	require.Less(t, time.Since(began), 3*time.Second)
}
