package control

import (
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/require"

	"lockfs/raftstore/namespace"
)

// waitDir looks names up in .lockfs/wait as the kernel does.
type waitDir struct {
	*directory
	cluster *cluster
	id      uint64
}

func newWaitDir() *waitDir {
	c := newCluster()
	d := directoryOf(c, nil)
	return &waitDir{directory: d, cluster: c, id: uint64(d.nodes.use(mirrorDir{waitView, namespace.RootIno}))}
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
	d.cluster.create(t, "lock", syscall.S_IFREG|0o600)
	lock := d.lookup(t, "lock")
	require.EqualValues(t, 0o400, lock.Mode&0o777)
	d.cluster.silent = true
	require.Equal(t, fuse.Status(syscall.ETIMEDOUT), d.GetAttr(nil, &fuse.GetAttrIn{InHeader: fuse.InHeader{NodeId: lock.NodeId}}, new(fuse.AttrOut)))
	require.Equal(t, fuse.Status(syscall.ETIMEDOUT), d.open(lock.NodeId))
}

// TestWhoWaitsDoesNotAskWithoutAPause: a client that is closed fails at once, and its readers may not get a signal for hours.
func TestWhoWaitsDoesNotAskWithoutAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newWaitDir()
		d.cluster.create(t, "lock", syscall.S_IFREG|0o644)
		lock := d.lookup(t, "lock")
		d.cluster.closed = true
		out := new(fuse.OpenOut)
		header := fuse.InHeader{NodeId: lock.NodeId}
		require.Equal(t, fuse.OK, d.Open(nil, &fuse.OpenIn{InHeader: header}, out))

		interrupted := make(chan struct{})
		ended := make(chan fuse.Status)
		go func() {
			_, code := d.Read(interrupted, &fuse.ReadIn{InHeader: header, Fh: out.Fh, Size: 100}, nil)
			ended <- code
		}()
		const most = int64(time.Minute/askAgainPause) + 1
		for began := time.Now(); time.Since(began) < time.Minute && d.cluster.failed.Load() <= most; {
			time.Sleep(askAgainPause)
		}
		close(interrupted)
		require.Equal(t, fuse.EINTR, <-ended)
		failed := d.cluster.failed.Load()
		require.Positive(t, failed)
		require.LessOrEqual(t, failed, most)
	})
}
