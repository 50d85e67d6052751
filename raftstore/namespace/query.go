package namespace

import (
	"syscall"

	"lockfs/raftstore/storepb"
)

// DirPage is the largest number of entries that one ReadDir answers.
const DirPage = 1024

// Query answers from the state as it is. The result belongs to the state: callers do not change it.
func (ns *Namespace) Query(query *storepb.Query) *storepb.Result {
	switch q := query.GetQuery().(type) {
	case *storepb.Query_Lookup:
		return ns.lookup(q.Lookup)
	case *storepb.Query_GetAttr:
		return ns.read(q.GetAttr.GetIno(), nil)
	case *storepb.Query_Read:
		return ns.readContent(q.Read)
	case *storepb.Query_ReadDir:
		return ns.readDir(q.ReadDir)
	case *storepb.Query_GetXattrs:
		in, found := ns.inodes.Get(q.GetXattrs.GetIno())
		if !found {
			return fail(storepb.Code_NOT_FOUND)
		}
		return &storepb.Result{Xattrs: in.xattrs}
	case *storepb.Query_StatFs:
		return &storepb.Result{FsStats: ns.fsStats(q.StatFs.GetUid())}
	case *storepb.Query_ListMembers:
		return &storepb.Result{Members: ns.Members()}
	case *storepb.Query_ListSessions:
		return &storepb.Result{Sessions: ns.liveSessions()}
	case *storepb.Query_ListRules:
		return &storepb.Result{Rules: ns.rules.Values()}
	case *storepb.Query_ListHosts:
		return &storepb.Result{Hosts: ns.listHosts()}
	case *storepb.Query_ListLocks:
		return ns.listLocks(q.ListLocks)
	case *storepb.Query_GetLock:
		return ns.getLock(q.GetLock)
	case *storepb.Query_ListProcesses:
		return ns.listProcesses(q.ListProcesses.GetHost())
	case *storepb.Query_AwaitLock:
		return ns.AwaitLock(q.AwaitLock)
	case *storepb.Query_TestLock:
		return ns.testLock(q.TestLock)
	case *storepb.Query_ListAdvisoryLocks:
		return ns.listAdvisories(q.ListAdvisoryLocks)
	case *storepb.Query_AwaitChange:
		return ns.awaitChange(q.AwaitChange)
	case *storepb.Query_ListEvents:
		return ns.listEvents(q.ListEvents)
	default:
		return fail(storepb.Code_UNKNOWN_COMMAND)
	}
}

func (ns *Namespace) liveSessions() []*storepb.SessionRecord {
	var live []*storepb.SessionRecord
	ns.sessions.Scan(func(_ uint64, s *session) bool {
		if s.endedIndex == 0 {
			live = append(live, s.message())
		}
		return true
	})
	return live
}

func (ns *Namespace) lookup(q *storepb.Lookup) *storepb.Result {
	dir, code := ns.directory(q.GetParent())
	if code != storepb.Code_OK {
		return fail(code)
	}
	ino := uint64(0)
	switch string(q.GetName()) {
	case ".":
		ino = dir.ino
	case "..":
		ino = dir.parent
	default:
		if len(q.GetName()) > MaxName {
			return fail(storepb.Code_NAME_TOO_LONG)
		}
		e, found := ns.entry(dir.ino, q.GetName())
		if !found {
			return fail(storepb.Code_NOT_FOUND)
		}
		result := ns.read(e.ino, nil)
		result.Looks = ns.looksAt(e)
		return result
	}
	return ns.read(ino, nil)
}

// read answers the attributes, and with a Read the content unless the reader knows it.
func (ns *Namespace) read(ino uint64, q *storepb.Read) *storepb.Result {
	in, found := ns.inodes.Get(ino)
	if !found {
		return fail(storepb.Code_NOT_FOUND)
	}
	result := &storepb.Result{Attr: in.attr()}
	if q != nil && in.version != q.GetKnownVersion() {
		result.Content = in.content
	}
	return result
}

// readContent tells the token of the name too by which the reader knows the inode.
func (ns *Namespace) readContent(q *storepb.Read) *storepb.Result {
	result := ns.read(q.GetIno(), q)
	if e, isNamed := ns.named(q.GetName(), q.GetIno()); isNamed {
		result.Looks = ns.looksAt(e)
		result.Looks[0].Empty = result.GetAttr().GetSize() == 0
	}
	return result
}

func (ns *Namespace) readDir(q *storepb.ReadDir) *storepb.Result {
	dir, found := ns.inodes.Get(q.GetIno())
	switch {
	case !found:
		return fail(storepb.Code_NOT_FOUND)
	case !dir.isDir():
		return fail(storepb.Code_NOT_DIRECTORY)
	}
	limit := int(q.GetLimit())
	if limit <= 0 || limit > DirPage {
		limit = DirPage
	}
	var entries []*storepb.DirEntry
	add := func(name string, ino, cookie uint64, mode uint32) bool {
		if cookie > q.GetAfter() {
			entries = append(entries, &storepb.DirEntry{
				Name: []byte(name), Ino: ino, Cookie: cookie, Mode: mode & syscall.S_IFMT,
			})
		}
		return len(entries) < limit
	}
	if add(".", dir.ino, cookieSelf, dir.mode) && add("..", dir.parent, cookieParent, dir.mode) {
		after := &entry{parent: dir.ino, cookie: max(q.GetAfter(), cookieParent) + 1}
		ns.byCookie.Ascend(after, func(e *entry) bool {
			if e.parent != dir.ino {
				return false
			}
			in, found := ns.inodes.Get(e.ino)
			return !found || add(e.name, e.ino, e.cookie, in.mode)
		})
	}
	return &storepb.Result{Entries: entries}
}
