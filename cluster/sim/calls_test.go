package sim

import (
	"context"
	"errors"
	"syscall"

	"lockfs/cluster/session"
	"lockfs/raftstore/storepb"
	"lockfs/test/history"
)

const fileMode = 0o644

// errnos is what a program is told, as fusefs has it.
var errnos = map[storepb.Code]syscall.Errno{
	storepb.Code_OK: 0, storepb.Code_NOT_FOUND: syscall.ENOENT, storepb.Code_EXISTS: syscall.EEXIST, storepb.Code_NOT_DIRECTORY: syscall.ENOTDIR,
	storepb.Code_IS_DIRECTORY: syscall.EISDIR, storepb.Code_NOT_EMPTY: syscall.ENOTEMPTY, storepb.Code_STALE: syscall.ESTALE,
	storepb.Code_NOT_PERMITTED: syscall.EPERM, storepb.Code_BUSY: syscall.EBUSY, storepb.Code_CANCELLED: syscall.ETIMEDOUT,
}

// do does a call of a history through the client of a mount, as one request where the kernel may need several.
func do(ctx context.Context, client *session.Client, dir uint64, call *history.Call) {
	d := doing{ctx: ctx, client: client, dir: dir}
	call.Errno = d.call(call)
	if call.Errno == syscall.ENOENT && call.OnDescriptor() {
		call.Errno = syscall.ESTALE // the inode is gone
	}
}

type doing struct {
	ctx    context.Context
	client *session.Client
	dir    uint64
}

func (d *doing) call(call *history.Call) syscall.Errno {
	name, to := []byte(call.Name), []byte(call.To)
	switch call.Kind {
	case history.Create, history.Open:
		result, errno := d.mutate(&storepb.Op{Op: &storepb.Op_Create{Create: &storepb.Create{
			Parent: d.dir, Name: name, Mode: syscall.S_IFREG | fileMode, Exclusive: call.Kind == history.Create,
		}}})
		call.Got.Ino = result.GetAttr().GetIno()
		return errno
	case history.Mkdir:
		_, errno := d.mutate(&storepb.Op{Op: &storepb.Op_Create{Create: &storepb.Create{
			Parent: d.dir, Name: name, Mode: syscall.S_IFDIR | 0o755, Exclusive: true,
		}}})
		return errno
	case history.Unlink, history.Rmdir:
		_, errno := d.mutate(&storepb.Op{Op: &storepb.Op_Unlink{Unlink: &storepb.Unlink{
			Parent: d.dir, Name: name, Directory: call.Kind == history.Rmdir,
		}}})
		return errno
	case history.Link:
		found, errno := d.lookup(name)
		if errno != 0 {
			return errno
		}
		_, errno = d.mutate(&storepb.Op{Op: &storepb.Op_Link{Link: &storepb.Link{Ino: found.GetIno(), Parent: d.dir, Name: to}}})
		return errno
	case history.Rename, history.NoReplace:
		_, errno := d.mutate(&storepb.Op{Op: &storepb.Op_Rename{Rename: &storepb.Rename{
			Parent: d.dir, Name: name, NewParent: d.dir, NewName: to, NoReplace: call.Kind == history.NoReplace,
		}}})
		return errno
	case history.Look, history.Stat:
		found, errno := d.lookup(name)
		see(call, found)
		if call.Kind == history.Look {
			call.Got.Nlink, call.Got.Size = 0, 0
		}
		return errno
	case history.Fstat:
		result, errno := d.query(&storepb.Query{Query: &storepb.Query_GetAttr{GetAttr: &storepb.GetAttr{Ino: call.Ino}}})
		see(call, result.GetAttr())
		return errno
	case history.Read:
		content, _, errno := d.read(call.Ino)
		call.Got.Content = string(content)
		return errno
	case history.List:
		return d.list(call)
	case history.Write, history.Append, history.Truncate:
		return d.write(call)
	}
	return syscall.ENOSYS
}

func see(call *history.Call, attr *storepb.Attr) {
	call.Got.Ino, call.Got.Nlink, call.Got.Size = attr.GetIno(), attr.GetNlink(), int64(attr.GetSize())
	call.Got.Dir = attr.GetMode()&syscall.S_IFMT == syscall.S_IFDIR
}

func (d *doing) list(call *history.Call) syscall.Errno {
	result, errno := d.query(&storepb.Query{Query: &storepb.Query_ReadDir{ReadDir: &storepb.ReadDir{Ino: d.dir}}})
	call.Got.Entries = make(map[string]uint64)
	for _, entry := range result.GetEntries() {
		if name := string(entry.GetName()); name != "." && name != ".." {
			call.Got.Entries[name] = entry.GetIno()
		}
	}
	return errno
}

// write is a compare-and-set of the whole content.
func (d *doing) write(call *history.Call) syscall.Errno {
	for {
		content, version, errno := d.read(call.Ino)
		if errno != 0 {
			return errno
		}
		switch call.Kind {
		case history.Append:
			content = append(content, call.Data...)
		case history.Truncate:
			content = nil
		default:
			content = append([]byte(call.Data), content[min(len(call.Data), len(content)):]...)
		}
		result, errno := d.mutate(&storepb.Op{Op: &storepb.Op_SetContent{SetContent: &storepb.SetContent{
			Ino: call.Ino, IfVersion: version, Content: content,
		}}})
		if result.GetCode() != storepb.Code_CONFLICT {
			return errno
		}
	}
}

func (d *doing) read(ino uint64) (content []byte, version uint64, errno syscall.Errno) {
	result, errno := d.query(&storepb.Query{Query: &storepb.Query_Read{Read: &storepb.Read{Ino: ino}}})
	return append([]byte(nil), result.GetContent()...), result.GetAttr().GetVersion(), errno
}

func (d *doing) lookup(name []byte) (*storepb.Attr, syscall.Errno) {
	result, errno := d.query(&storepb.Query{Query: &storepb.Query_Lookup{Lookup: &storepb.Lookup{Parent: d.dir, Name: name}}})
	return result.GetAttr(), errno
}

func (d *doing) mutate(op *storepb.Op) (*storepb.Result, syscall.Errno) {
	return outcome(d.client.Mutate(d.ctx, &storepb.Caller{}, op))
}

// query asks what only reads. A failure of it says nothing.
func (d *doing) query(query *storepb.Query) (*storepb.Result, syscall.Errno) {
	return outcome(d.client.Query(d.ctx, query))
}

func outcome(result *storepb.Result, err error) (*storepb.Result, syscall.Errno) {
	switch {
	case err == nil:
	case errors.Is(err, context.DeadlineExceeded):
		return nil, syscall.ETIMEDOUT
	default:
		return nil, syscall.EIO
	}
	errno, known := errnos[result.GetCode()]
	if !known {
		errno = syscall.EINVAL
	}
	return result, errno
}
