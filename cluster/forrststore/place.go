package forrststore

import (
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"

	"lockfs/cluster/session"
	"lockfs/formats/forrst"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// forrst.FileName returns no name with a leading dot.
const (
	dirName     = ".forrst"
	queueName   = ".queue"
	repliesName = ".replies"
)

// RepliesDir is the directory of answers, from the root of the namespace.
const RepliesDir = dirName + "/" + repliesName

type place struct{ locks, replies, queue ids.Inode }

// tree finds the place in the namespace.
type tree struct {
	client *session.Client

	mu    sync.Mutex
	place *place // nil: unknown yet
}

// where returns the place, and creates it if it is missing. An administrator may have removed it.
func (t *tree) where(ctx context.Context) (*place, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.place != nil {
		return t.place, nil
	}
	p := new(place)
	for _, part := range []struct {
		name string
		in   ids.Inode
		mode uint32
		ino  *ids.Inode
	}{
		{dirName, namespace.RootIno, syscall.S_IFDIR | 0o755, &p.locks},
		{repliesName, 0, syscall.S_IFDIR | 0o700, &p.replies},
		{queueName, 0, syscall.S_IFREG | 0o600, &p.queue},
	} {
		if part.in == 0 {
			part.in = p.locks
		}
		var err error
		if *part.ino, err = t.ensure(ctx, part.in, part.name, part.mode); err != nil {
			return nil, err
		}
	}
	t.place = p
	return p, nil
}

func (t *tree) misplaced(p *place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.place == p {
		t.place = nil
	}
}

// ensure returns the inode number of a name, and creates it if necessary. It refuses files of other owners,
// who could remove locks.
func (t *tree) ensure(ctx context.Context, parent ids.Inode, name string, mode uint32) (ids.Inode, error) {
	create := &storepb.Create{Parent: uint64(parent), Name: []byte(name), Mode: mode, Exclusive: true, Unlisted: true}
	result, err := t.mutate(ctx, &storepb.Op{Op: &storepb.Op_Create{Create: create}})
	if err == nil && result.GetCode() == storepb.Code_EXISTS {
		lookup := &storepb.Lookup{Parent: uint64(parent), Name: []byte(name)}
		result, err = t.client.Query(ctx, &storepb.Query{Query: &storepb.Query_Lookup{Lookup: lookup}})
	}
	if err != nil {
		return 0, err
	}
	attr := result.GetAttr()
	switch {
	case result.GetCode() != storepb.Code_OK:
		return 0, refused(name, result)
	case attr.GetMode()&syscall.S_IFMT != mode&syscall.S_IFMT:
		return 0, fmt.Errorf("%s is there, but of another type; remove it", name)
	case attr.GetUid() != 0 && attr.GetUid() != uint32(os.Getuid()):
		return 0, fmt.Errorf("%s belongs to user %d, and must belong to the one that runs the server or to root", name, attr.GetUid())
	}
	return ids.Inode(attr.GetIno()), nil
}

func locksDir(p *place) ids.Inode   { return p.locks }
func repliesDir(p *place) ids.Inode { return p.replies }

// make creates a file in one of the directories, even if the directory was removed.
func (t *tree) make(ctx context.Context, dir func(*place) ids.Inode, op *storepb.Create) (*storepb.Result, error) {
	for {
		at, err := t.where(ctx)
		if err != nil {
			return nil, err
		}
		op.Parent, op.Exclusive = uint64(dir(at)), true
		result, err := t.mutate(ctx, &storepb.Op{Op: &storepb.Op_Create{Create: op}})
		if err != nil || result.GetCode() != storepb.Code_NOT_FOUND {
			return result, err
		}
		t.misplaced(at)
	}
}

func (t *tree) caller() *storepb.Caller {
	return &storepb.Caller{Uid: uint32(os.Getuid()), Gid: uint32(os.Getgid()), Pid: uint32(os.Getpid())}
}

func (t *tree) mutate(ctx context.Context, op *storepb.Op) (*storepb.Result, error) {
	return t.client.Mutate(ctx, t.caller(), op)
}

// refused returns the error for an unexpected result. It is ErrRefused if a retry would fail, too, as with an
// exhausted quota.
func refused(name string, result *storepb.Result) error {
	err := fmt.Errorf("%s: %v %s", name, result.GetCode(), result.GetMessage())
	switch result.GetCode() {
	case storepb.Code_QUOTA, storepb.Code_NO_SPACE, storepb.Code_FILE_TOO_BIG, storepb.Code_INVALID, storepb.Code_NOT_DIRECTORY:
		err = fmt.Errorf("%w: %w", forrst.ErrRefused, err)
	}
	return err
}
