package fusefs

import (
	"syscall"

	"lockfs/fusefs/fuseattr"
	"lockfs/fusefs/lookguard"
	"lockfs/fusefs/thread"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// edit computes new content from old, possibly several times. It must not change old.
type edit func(old []byte) ([]byte, syscall.Errno)

// current returns the committed content, and observations of the name.
func (fs *fileSystem) current(by thread.Request, in *inode, name *storepb.Observation) (now content, seen []*storepb.Observation, errno syscall.Errno) {
	known := in.last()
	result, errno := fs.query(by, &storepb.Query{Query: &storepb.Query_Read{
		Read: &storepb.Read{Ino: uint64(in.ino), KnownVersion: known.version, Name: name},
	}})
	if errno != 0 {
		return content{}, nil, fuseattr.OfInode(errno)
	}
	fs.seen(result.GetAttr())
	version := result.GetAttr().GetVersion()
	if known.version != 0 && version == known.version {
		return known, result.GetObservations(), 0
	}
	now = content{version: version, data: result.GetContent()}
	in.learn(now)
	return now, result.GetObservations(), 0
}

// writer is the caller of a change of content, with its name for the file and its observations.
type writer struct {
	interrupted <-chan struct{} // see thread.Request
	caller      *storepb.Caller
	name        *storepb.Observation   // nil: unknown
	seen        []*storepb.Observation // of a truncation; they guard no other write
	session     ids.Session            // of the file's locks; 0: none
}

// truncation returns a writer with the caller's observations: it may be the removal of a lock.
func (fs *fileSystem) truncation(interrupted <-chan struct{}, caller *storepb.Caller, by []*storepb.Observation) writer {
	w := writer{interrupted: interrupted, caller: caller, name: nameOf(by)}
	if w.name != nil {
		w.seen = fs.observations.SeenBy(caller.GetPid(), lookguard.Name{Parent: ids.Inode(w.name.GetParent()), Name: string(w.name.GetName())})
	}
	return w
}

// change is the only function that changes content. It computes new content from the version seen last,
// commits it if the file still has this version, and otherwise starts again. The attempts are unlimited, as
// each failure means progress of another writer. An edit's error counts only for the committed content.
func (fs *fileSystem) change(by writer, in *inode, do edit) (*storepb.Attr, []*storepb.Observation, syscall.Errno) {
	in.writing.Lock()
	defer in.writing.Unlock()
	base, fresh := in.last(), false
	for {
		if base.version != 0 {
			data, errno := do(base.data)
			if errno != 0 && fresh {
				return nil, nil, errno
			}
			if errno == 0 {
				result, done, errno := fs.compareAndSet(by, in, base.version, data)
				if done || errno != 0 {
					return result.GetAttr(), result.GetObservations(), errno
				}
			}
		}
		var errno syscall.Errno
		if base, _, errno = fs.current(thread.NewRequest(by.interrupted, by.caller.GetPid()), in, nil); errno != 0 {
			return nil, nil, errno
		}
		fresh = true
	}
}

// compareAndSet commits content if the file still has this version. It returns neither done nor an error for
// another version.
func (fs *fileSystem) compareAndSet(
	by writer, in *inode, version uint64, data []byte,
) (result *storepb.Result, done bool, errno syscall.Errno) {
	result, errno = fs.mutate(by.interrupted, by.caller, &storepb.Op{Op: &storepb.Op_SetContent{SetContent: &storepb.SetContent{
		Ino: uint64(in.ino), IfVersion: version, Content: data, Name: by.name, Observations: by.seen, Session: uint64(by.session),
	}}})
	if result.GetCode() == storepb.Code_CONFLICT {
		return nil, false, 0
	}
	if errno != 0 {
		return nil, false, fuseattr.OfInode(errno)
	}
	fs.seen(result.GetAttr())
	in.learn(content{version: result.GetAttr().GetVersion(), data: data})
	return result, true, 0
}

// writeAt puts data at an offset, and fills a gap before it with zeros.
func writeAt(offset uint64, data []byte) edit {
	return func(old []byte) ([]byte, syscall.Errno) {
		end := offset + uint64(len(data))
		if end > namespace.MaxContent || end < offset {
			return nil, syscall.EFBIG
		}
		changed := make([]byte, max(uint64(len(old)), end))
		copy(changed, old)
		copy(changed[offset:], data)
		return changed, 0
	}
}

func appendTo(data []byte) edit {
	return func(old []byte) ([]byte, syscall.Errno) {
		return writeAt(uint64(len(old)), data)(old)
	}
}

// resize truncates content or extends it with zeros.
func resize(size uint64) edit {
	return func(old []byte) ([]byte, syscall.Errno) {
		if size > namespace.MaxContent {
			return nil, syscall.EFBIG
		}
		changed := make([]byte, size)
		copy(changed, old)
		return changed, 0
	}
}

// extend makes content at least size bytes long.
func extend(size uint64) edit {
	return func(old []byte) ([]byte, syscall.Errno) {
		return resize(max(size, uint64(len(old))))(old)
	}
}
