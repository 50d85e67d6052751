package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/require"

	"lockfs/fusefs/observation"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// cluster is a namespace without a log, and who asks it.
type cluster struct {
	ns     *namespace.Namespace
	index  uint64
	silent bool // it does not answer

	closed bool         // it fails at once to tell of changes
	failed atomic.Int64 // how often it did
}

func newCluster() *cluster {
	c := &cluster{ns: namespace.New()}
	c.apply(&storepb.Command{Session: 1, Op: &storepb.Op{Op: &storepb.Op_OpenSession{OpenSession: &storepb.OpenSession{Host: "host", BootId: "boot"}}}})
	return c
}

func (c *cluster) apply(cmd *storepb.Command) *storepb.Result {
	c.index++
	cmd.Time = time.Now().UnixNano()
	return c.ns.Apply(ids.Index(c.index), cmd)
}

// create makes a name in the root.
func (c *cluster) create(t testing.TB, name string, mode uint32) (ino uint64) {
	t.Helper()
	create := &storepb.Create{Parent: namespace.RootIno, Name: []byte(name), Mode: mode, Exclusive: true, Says: storepb.NameSays_SAYS_LOCK}
	result := c.apply(&storepb.Command{
		Session: 1, Seq: c.index, Acked: c.index - 1, Caller: &storepb.Caller{Host: "host"}, Op: &storepb.Op{Op: &storepb.Op_Create{Create: create}},
	})
	require.Equal(t, storepb.Code_OK, result.GetCode(), result)
	return result.GetAttr().GetIno()
}

func (c *cluster) Query(_ context.Context, query *storepb.Query) (*storepb.Result, error) {
	if c.silent {
		return nil, context.DeadlineExceeded
	}
	if c.closed && query.GetAwaitChange() != nil {
		c.failed.Add(1)
		return nil, errors.New("closed")
	}
	return c.ns.Query(query), nil
}

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

func directoryOf(c *cluster, t Tree) *directory {
	return newDirectory(&source{cluster: c, tree: t, observations: observation.New(nil), logger: slog.New(slog.DiscardHandler)}, Budgets{})
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
