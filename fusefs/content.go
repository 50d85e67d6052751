package fusefs

import (
	"syscall"

	"lockfs/fusefs/kernel"
	"lockfs/fusefs/observation"
	"lockfs/fusefs/thread"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// edit works out new content from old. It may be called several times, and must not change old.
type edit func(old []byte) ([]byte, syscall.Errno)

// current asks for the content as it is committed now, and for the lock that a name is.
func (fs *fileSystem) current(by thread.Request, in *inode, name *storepb.Observation) (now content, seen []*storepb.Observation, errno syscall.Errno) {
	known := in.last()
	result, errno := fs.query(by, &storepb.Query{Query: &storepb.Query_Read{
		Read: &storepb.Read{Ino: uint64(in.ino), KnownVersion: known.version, Name: name},
	}})
	if errno != 0 {
		return content{}, nil, kernel.OfInode(errno)
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

// writer is who changes content, by which name, and what it is held to.
type writer struct {
	interrupted <-chan struct{} // see request
	caller      *storepb.Caller
	name        *storepb.Observation   // nil if it is not known
	seen        []*storepb.Observation // of a truncation; other writes are held to nothing
	session     ids.Session            // in which the file was locked; 0: it was not
}

// truncation is held to what the caller saw: it may be the removal of a lock.
func (fs *fileSystem) truncation(interrupted <-chan struct{}, caller *storepb.Caller, by []*storepb.Observation) writer {
	w := writer{interrupted: interrupted, caller: caller, name: nameOf(by)}
	if w.name != nil {
		w.seen = fs.observations.SeenBy(caller.GetPid(), observation.Name{Parent: ids.Inode(w.name.GetParent()), Name: string(w.name.GetName())})
	}
	return w
}

// change is the one way in which content changes: it is computed from the version seen last, committed
// if that is still the version, and computed anew if not. There is no limit to the attempts, since each
// means that somebody else made progress. An edit's refusal counts only if it judged what is committed.
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

// compareAndSet commits content if the file still has that version. Not done and no error: it has another.
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
		return nil, false, kernel.OfInode(errno)
	}
	fs.seen(result.GetAttr())
	in.learn(content{version: result.GetAttr().GetVersion(), data: data})
	return result, true, 0
}

// writeAt puts data at an offset; a gap before it is filled with zeros.
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

// resize cuts content off or extends it with zeros.
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

// extend makes content at least that long.
func extend(size uint64) edit {
	return func(old []byte) ([]byte, syscall.Errno) {
		return resize(max(size, uint64(len(old))))(old)
	}
}
