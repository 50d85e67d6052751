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
	"lockfs/raftstore/storepb"
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
	d.cluster.fallSilent()
	require.Equal(t, fuse.Status(syscall.ETIMEDOUT), d.GetAttr(nil, &fuse.GetAttrIn{InHeader: fuse.InHeader{NodeId: lock.NodeId}}, new(fuse.AttrOut)))
	require.Equal(t, fuse.Status(syscall.ETIMEDOUT), d.open(lock.NodeId))
}

// opened opens a file and returns how a program reads it in the background.
func (c *directory) opened(t *testing.T, node uint64) (read func(interrupted <-chan struct{}) (data <-chan string)) {
	t.Helper()
	out, header := new(fuse.OpenOut), fuse.InHeader{NodeId: node}
	require.Equal(t, fuse.OK, c.Open(nil, &fuse.OpenIn{InHeader: header}, out))
	return func(interrupted <-chan struct{}) <-chan string {
		data := make(chan string, 1)
		go func() {
			result, code := c.Read(interrupted, &fuse.ReadIn{InHeader: header, Fh: out.Fh, Size: 1 << 16}, nil)
			if !code.Ok() {
				data <- code.String()
				return
			}
			bytes, _ := result.Bytes(nil)
			data <- string(bytes)
		}()
		return data
	}
}

// TestAWaitAsksWithPausesWhileTheClusterIsSilent. A client that is closed fails at once, and its readers may not get a signal for hours.
func TestAWaitAsksWithPausesWhileTheClusterIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newWaitDir()
		d.cluster.create(t, "lock", syscall.S_IFREG|0o644)
		interrupted := make(chan struct{})
		data := d.opened(t, d.lookup(t, "lock").NodeId)(interrupted)
		synctest.Wait()
		d.cluster.fallSilent()
		before := d.cluster.questions(&storepb.Query_GetLock{})
		d.cluster.apply(&storepb.Command{Op: &storepb.Op{Op: &storepb.Op_Tick{Tick: &storepb.Tick{}}}})
		time.Sleep(time.Minute)
		close(interrupted)
		require.Equal(t, fuse.EINTR.String(), <-data)
		asked := d.cluster.questions(&storepb.Query_GetLock{}) - before
		require.Greater(t, asked, 1)
		require.LessOrEqual(t, asked, int(time.Minute/askAgainPause)+1)
	})
}

// TestReadersOfOneNameShareQuestions has many programs wait for one lock: each change of the name costs one question.
func TestReadersOfOneNameShareQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const readers = 1000
		d := newWaitDir()
		d.cluster.create(t, "lock", syscall.S_IFREG|0o644)
		node := d.lookup(t, "lock").NodeId
		release := make(chan struct{})
		d.cluster.before = func(*storepb.Query) { <-release }
		asked := func() int { return d.cluster.questions(&storepb.Query_GetLock{}) }
		all := make([]<-chan string, readers)
		for i := range all {
			d.cluster.before = nil
			read := d.opened(t, node)
			d.cluster.before = func(query *storepb.Query) {
				if query.GetGetLock() != nil {
					<-release
				}
			}
			all[i] = read(nil)
			synctest.Wait()
		}
		close(release)
		synctest.Wait()
		require.Equal(t, 2, asked(), "one for the first, and one for those that came meanwhile")
		d.cluster.apply(&storepb.Command{Op: &storepb.Op{Op: &storepb.Op_Tick{Tick: &storepb.Tick{}}}})
		synctest.Wait()
		require.LessOrEqual(t, asked(), 4)
		d.cluster.remove(t, "lock")
		for _, data := range all {
			require.Equal(t, "free\n", <-data)
		}
		require.LessOrEqual(t, asked(), 6)
		require.Empty(t, d.source.lockStates.names)
	})
}

// TestAReaderThatComesLaterIsNotToldOfAnEarlierState: the question must begin after the read.
func TestAReaderThatComesLaterIsNotToldOfAnEarlierState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newWaitDir()
		d.cluster.create(t, "lock", syscall.S_IFREG|0o644)
		node := d.lookup(t, "lock").NodeId
		first, second := d.opened(t, node), d.opened(t, node)
		answered, release := make(chan struct{}), make(chan struct{})
		d.cluster.after = func(query *storepb.Query) {
			if query.GetGetLock() != nil {
				close(answered)
				<-release
				d.cluster.after = nil
			}
		}
		one := first(nil)
		<-answered // that the lock is held
		d.cluster.remove(t, "lock")
		two := second(nil)
		synctest.Wait()
		close(release)
		require.Equal(t, "free\n", <-two)
		require.Equal(t, "free\n", <-one)
	})
}
