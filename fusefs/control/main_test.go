package control

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/require"

	"lockfs/fusefs/lookguard"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// cluster is a namespace without a log, and who asks it.
type cluster struct {
	ns     *namespace.Namespace
	index  uint64
	silent bool // it fails at once to answer

	mu      sync.Mutex
	changed chan struct{}              // closed with each command
	event   chan struct{}              // closed with each event
	asked   map[string]int             // how often, by the kind of question
	before  func(query *storepb.Query) // each question is answered; may be nil
	after   func(query *storepb.Query) // it is answered, but not told; may be nil
}

func newCluster() *cluster {
	c := &cluster{ns: namespace.New(), changed: make(chan struct{}), event: make(chan struct{}), asked: make(map[string]int)}
	c.apply(&storepb.Command{Session: 1, Op: &storepb.Op{Op: &storepb.Op_OpenSession{OpenSession: &storepb.OpenSession{Host: "host", BootId: "boot"}}}})
	return c
}

func (c *cluster) apply(cmd *storepb.Command) *storepb.Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.index++
	cmd.Time = time.Now().UnixNano()
	last := c.ns.LastEvent()
	result := c.ns.Apply(ids.Index(c.index), cmd)
	if c.ns.LastEvent() != last {
		close(c.event)
		c.event = make(chan struct{})
	}
	close(c.changed)
	c.changed = make(chan struct{})
	return result
}

// create makes a name in the root.
func (c *cluster) create(t testing.TB, name string, mode uint32) (ino uint64) {
	t.Helper()
	return c.createIn(t, namespace.RootIno, name, mode)
}

func (c *cluster) createIn(t testing.TB, parent uint64, name string, mode uint32) (ino uint64) {
	t.Helper()
	create := &storepb.Create{Parent: parent, Name: []byte(name), Mode: mode, Exclusive: true, Says: storepb.NameSays_SAYS_LOCK}
	result := c.apply(&storepb.Command{
		Session: 1, Seq: c.index, Acked: c.index - 1, Caller: &storepb.Caller{Host: "host"}, Op: &storepb.Op{Op: &storepb.Op_Create{Create: create}},
	})
	require.Equal(t, storepb.Code_OK, result.GetCode(), result)
	return result.GetAttr().GetIno()
}

func (c *cluster) Query(_ context.Context, query *storepb.Query) (*storepb.Result, error) {
	if c.before != nil {
		c.before(query)
	}
	result, err := c.answer(query)
	if c.after != nil {
		c.after(query)
	}
	return result, err
}

func (c *cluster) answer(query *storepb.Query) (*storepb.Result, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked[fmt.Sprintf("%T", query.GetQuery())]++
	if c.silent {
		return nil, context.DeadlineExceeded
	}
	result := c.ns.Query(query)
	result.Index = c.index
	return result, nil
}

// questions are how often the cluster was asked one like this.
func (c *cluster) questions(like any) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked[fmt.Sprintf("%T", like)]
}

func (c *cluster) fallSilent() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.silent = true
}

// NameChanged tells of each command.
func (c *cluster) NameChanged(_ *storepb.Observation, since ids.Index) (changed <-chan struct{}, end func()) {
	_, changed, end = c.StateAfter(since)
	return changed, end
}

func (c *cluster) EventsAfter(number uint64) (there <-chan struct{}, end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ns.LastEvent() > number {
		return alreadyEnded, func() {}
	}
	return c.event, func() {}
}

func (c *cluster) StateAfter(index ids.Index) (known ids.Index, changed <-chan struct{}, end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known = ids.Index(c.index); known > index {
		return known, alreadyEnded, func() {}
	}
	return known, c.changed, func() {}
}

// alreadyEnded is the channel of a wait that has ended.
var alreadyEnded = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func (c *cluster) Status() *storepb.MountStatus {
	return &storepb.MountStatus{Host: "host", Leader: "leader", Session: 1, ClusterTime: time.Now().UnixNano()}
}

// tree notes what it is asked.
type tree struct {
	found   ids.Inode // the inode that was looked up last
	removed []string
}

func (t *tree) LookedUp(_ uint32, _ ids.Inode, _ string, ino ids.Inode) { t.found = ino }

func (t *tree) RemoveForced(caller *storepb.Caller, parent ids.Inode, name string, directory bool) syscall.Errno {
	t.removed = append(t.removed, fmt.Sprintf("%s in %d for %d: %t", name, parent, caller.GetUid(), directory))
	return 0
}

// remove takes a name of the root away.
func (c *cluster) remove(t testing.TB, name string) {
	t.Helper()
	unlink := &storepb.Unlink{Parent: namespace.RootIno, Name: []byte(name)}
	result := c.apply(&storepb.Command{
		Session: 1, Seq: c.index, Acked: c.index - 1, Caller: &storepb.Caller{Host: "host"}, Op: &storepb.Op{Op: &storepb.Op_Unlink{Unlink: unlink}},
	})
	require.Equal(t, storepb.Code_OK, result.GetCode(), result)
}

func directoryOf(c *cluster, t Tree) *directory {
	return newDirectory(&source{cluster: c, tree: t, observations: lookguard.New(nil), logger: slog.New(slog.DiscardHandler)}, Budgets{})
}

// at looks a path up that begins below the control directory, as the kernel does.
func (c *directory) at(t testing.TB, path ...string) (id uint64) {
	t.Helper()
	var out fuse.EntryOut
	require.Equal(t, fuse.OK, c.Lookup(nil, &fuse.InHeader{NodeId: namespace.RootIno}, Name, &out))
	for _, name := range path {
		require.Equal(t, fuse.OK, c.Lookup(nil, &fuse.InHeader{NodeId: out.NodeId}, name, &out), name)
	}
	return out.NodeId
}

// read opens a file and reads all of it.
func (c *directory) read(t testing.TB, path ...string) string {
	t.Helper()
	var out fuse.OpenOut
	header := fuse.InHeader{NodeId: c.at(t, path...)}
	require.Equal(t, fuse.OK, c.Open(nil, &fuse.OpenIn{InHeader: header}, &out))
	defer c.Release(nil, &fuse.ReleaseIn{InHeader: header, Fh: out.Fh})
	result, code := c.Read(nil, &fuse.ReadIn{InHeader: header, Fh: out.Fh, Size: 1 << 20}, nil)
	require.Equal(t, fuse.OK, code)
	data, code := result.Bytes(nil)
	require.Equal(t, fuse.OK, code)
	return string(data)
}
