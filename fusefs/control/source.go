package control

import (
	"context"
	"log/slog"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/fusefs/kernel"
	"lockfs/fusefs/observation"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Cluster is what the directory tells of.
type Cluster interface {
	// Query answers with everything that was committed when it was asked, unless ctx ends before. The error is
	// context.DeadlineExceeded if the time for an answer was up.
	Query(ctx context.Context, query *storepb.Query) (*storepb.Result, error)
	// NameChanged returns a channel that is closed once a name may be another lock than in the state after a command, or none any more, or stale.
	// end ends the wait.
	NameChanged(name *storepb.Observation, since ids.Index) (changed <-chan struct{}, end func())
	// EventsAfter returns a channel that is closed once there may be an event after a number. end ends the wait.
	EventsAfter(number uint64) (there <-chan struct{}, end func())
	// StateAfter returns the last command of which the mount knows, and a channel that is closed once it knows of one after index. It hears of
	// commands once a second. end ends the wait.
	StateAfter(index ids.Index) (known ids.Index, changed <-chan struct{}, end func())
	// Status is what the mount knows of itself, at once.
	Status() *storepb.MountStatus
}

// Tree is the real tree, which has names removed through force.
type Tree interface {
	// LookedUp notes what a thread has found under a real name; ino 0: it was free.
	LookedUp(thread uint32, parent ids.Inode, name string, ino ids.Inode)
	// RemoveForced takes a name away, whatever its policy's guard says and the caller has seen of it.
	RemoveForced(caller *storepb.Caller, parent ids.Inode, name string, directory bool) syscall.Errno
}

// source is where all that the directory tells comes from.
type source struct {
	cluster      Cluster
	tree         Tree
	observations *observation.Memory
	logger       *slog.Logger
	began        int64 // cluster time at which the mount was made
	lockStates   *lockStates
	events       *eventFeeds
}

const (
	rootMode = syscall.S_IFDIR | 0o555
	fileMode = syscall.S_IFREG | 0o444
)

// fixed are the attributes of what is there from the mount on, and is everybody's to read.
func (s *source) fixed(mode uint32) *storepb.Attr {
	return &storepb.Attr{Mode: mode, Nlink: 1, Atime: s.began, Mtime: s.began, Ctime: s.began, Btime: s.began}
}

// query answers even if its caller was killed meanwhile.
func (s *source) query(query *storepb.Query) (*storepb.Result, syscall.Errno) {
	result, err := s.cluster.Query(context.Background(), query)
	return kernel.Outcome(result, err, s.logger)
}

func (s *source) getLock(which *storepb.GetLock) (*storepb.Result, syscall.Errno) {
	return s.query(&storepb.Query{Query: &storepb.Query_GetLock{GetLock: which}})
}

func (s *source) attr(ino ids.Inode) (*storepb.Attr, syscall.Errno) {
	result, errno := s.query(&storepb.Query{Query: &storepb.Query_GetAttr{GetAttr: &storepb.GetAttr{Ino: uint64(ino)}}})
	return result.GetAttr(), kernel.OfInode(errno)
}

func (s *source) lookup(parent ids.Inode, name string) (*storepb.Attr, syscall.Errno) {
	result, errno := s.query(&storepb.Query{Query: &storepb.Query_Lookup{
		Lookup: &storepb.Lookup{Parent: uint64(parent), Name: []byte(name)},
	}})
	return result.GetAttr(), errno
}

func (s *source) list(ino ids.Inode, after uint64, wanted uint32) ([]fuse.DirEntry, syscall.Errno) {
	result, errno := s.query(&storepb.Query{Query: &storepb.Query_ReadDir{
		ReadDir: &storepb.ReadDir{Ino: uint64(ino), After: after, Limit: wanted},
	}})
	var entries []fuse.DirEntry
	for _, e := range result.GetEntries() {
		entries = append(entries, fuse.DirEntry{Name: string(e.GetName()), Mode: e.GetMode(), Off: e.GetCookie()})
	}
	return entries, errno
}

// isEmpty tells whether a directory has only the entries that all have.
func (s *source) isEmpty(ino ids.Inode) (bool, syscall.Errno) {
	entries, errno := s.list(ino, 0, 3)
	return len(entries) < 3, errno
}

func isDir(attr *storepb.Attr) bool { return attr.GetMode()&syscall.S_IFMT == syscall.S_IFDIR }

// tellingMode is that of a file which tells of another one, and is for the same readers.
func tellingMode(attr *storepb.Attr) uint32 { return syscall.S_IFREG | attr.GetMode()&0o444 }

// likeReal gives the owner and the times of what is real to what stands for it.
func likeReal(attr *storepb.Attr, mode, nlink uint32) *storepb.Attr {
	return &storepb.Attr{
		Mode: mode, Nlink: nlink, Uid: attr.GetUid(), Gid: attr.GetGid(),
		Atime: attr.GetAtime(), Mtime: attr.GetMtime(), Ctime: attr.GetCtime(), Btime: attr.GetBtime(),
	}
}
