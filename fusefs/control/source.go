package control

import (
	"context"
	"log/slog"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/fusefs/fuseattr"
	"lockfs/fusefs/lookguard"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Cluster is the directory's source of data.
type Cluster interface {
	// Query returns a result with all changes committed before it, unless ctx ends first. The error is
	// context.DeadlineExceeded at the time limit.
	Query(ctx context.Context, query *storepb.Query) (*storepb.Result, error)
	// NameChanged returns a channel which is closed once a name may have changed since the state after a
	// command: another lock, none, or a stale one. end ends the wait.
	NameChanged(name *storepb.Observation, since ids.Index) (changed <-chan struct{}, end func())
	// EventsAfter returns a channel which is closed once there may be an event after a number. end ends the
	// wait.
	EventsAfter(number uint64) (there <-chan struct{}, end func())
	// StateAfter returns the last known command, and a channel which is closed once a command after index is
	// known. The mount learns of commands once a second. end ends the wait.
	StateAfter(index ids.Index) (known ids.Index, changed <-chan struct{}, end func())
	// Status returns the mount's own status, without a wait.
	Status() *storepb.MountStatus
}

// Tree is the real tree, for removals through force.
type Tree interface {
	// LookedUp records a thread's lookup of a real name; ino 0: no entry.
	LookedUp(thread uint32, parent ids.Inode, name string, ino ids.Inode)
	// RemoveForced removes a name despite its policy's guard and the caller's observations.
	RemoveForced(caller *storepb.Caller, parent ids.Inode, name string, directory bool) syscall.Errno
}

// source is the source of all content of the directory.
type source struct {
	cluster      Cluster
	tree         Tree
	observations *lookguard.Memory
	logger       *slog.Logger
	began        int64 // cluster time at the mount's start
	lockStates   *lockStates
	events       *eventFeeds
}

const (
	rootMode = syscall.S_IFDIR | 0o555
	fileMode = syscall.S_IFREG | 0o444
)

// fixed returns the attributes of nodes which exist from the start, readable for all users.
func (s *source) fixed(mode uint32) *storepb.Attr {
	return &storepb.Attr{Mode: mode, Nlink: 1, Atime: s.began, Mtime: s.began, Ctime: s.began, Btime: s.began}
}

// query continues if its caller is killed.
func (s *source) query(query *storepb.Query) (*storepb.Result, syscall.Errno) {
	result, err := s.cluster.Query(context.Background(), query)
	return fuseattr.Outcome(result, err, s.logger)
}

func (s *source) getLock(which *storepb.GetLock) (*storepb.Result, syscall.Errno) {
	return s.query(&storepb.Query{Query: &storepb.Query_GetLock{GetLock: which}})
}

func (s *source) attr(ino ids.Inode) (*storepb.Attr, syscall.Errno) {
	result, errno := s.query(&storepb.Query{Query: &storepb.Query_GetAttr{GetAttr: &storepb.GetAttr{Ino: uint64(ino)}}})
	return result.GetAttr(), fuseattr.OfInode(errno)
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

// isEmpty reports whether a directory has only the entries . and ..
func (s *source) isEmpty(ino ids.Inode) (bool, syscall.Errno) {
	entries, errno := s.list(ino, 0, 3)
	return len(entries) < 3, errno
}

func isDir(attr *storepb.Attr) bool { return attr.GetMode()&syscall.S_IFMT == syscall.S_IFDIR }

// tellingMode returns the mode of a file about another one, for the same readers.
func tellingMode(attr *storepb.Attr) uint32 { return syscall.S_IFREG | attr.GetMode()&0o444 }

// likeReal returns attributes with the owner and times of a real inode.
func likeReal(attr *storepb.Attr, mode, nlink uint32) *storepb.Attr {
	return &storepb.Attr{
		Mode: mode, Nlink: nlink, Uid: attr.GetUid(), Gid: attr.GetGid(),
		Atime: attr.GetAtime(), Mtime: attr.GetMtime(), Ctime: attr.GetCtime(), Btime: attr.GetBtime(),
	}
}
