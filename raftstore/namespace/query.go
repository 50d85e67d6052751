package namespace

import (
	"syscall"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Query answers from the present state. The result belongs to the state: callers do not change it.
func (ns *Namespace) Query(query *storepb.Query) *storepb.Result {
	return queryEngine{&ns.evaluator}.query(query)
}

// DirPage is the largest number of entries in one answer to ReadDir.
const DirPage = 1024

func (r queryEngine) query(query *storepb.Query) *storepb.Result {
	switch q := query.GetQuery().(type) {
	case *storepb.Query_Lookup:
		return r.lookup(q.Lookup)
	case *storepb.Query_GetAttr:
		return r.read(ids.Inode(q.GetAttr.GetIno()), nil)
	case *storepb.Query_Read:
		return r.readContent(q.Read)
	case *storepb.Query_ReadDir:
		return r.readDir(q.ReadDir)
	case *storepb.Query_GetXattrs:
		in, found := r.tree.inode(ids.Inode(q.GetXattrs.GetIno()))
		if !found {
			return fail(storepb.Code_NOT_FOUND)
		}
		return &storepb.Result{Xattrs: in.xattrs}
	case *storepb.Query_StatFs:
		stats := r.tree.fsStats(q.StatFs.GetUid(), ids.Inode(q.StatFs.GetIno()))
		if r.lowSpaceAlarm() != nil {
			stats.FreeBytes = 0
		}
		return &storepb.Result{FsStats: stats}
	case *storepb.Query_ListMembers:
		return &storepb.Result{Members: r.members.Values()}
	case *storepb.Query_ListSessions:
		return &storepb.Result{Sessions: r.sessions.liveSessions()}
	case *storepb.Query_ListRules:
		return &storepb.Result{Rules: r.rules.byPattern.Values()}
	case *storepb.Query_ListHosts:
		return &storepb.Result{Hosts: r.hosts.listHosts()}
	case *storepb.Query_ListQuotas:
		result := &storepb.Result{Quotas: r.tree.listQuotas()}
		if q.ListQuotas.GetBudgets() {
			result.Budgets = r.listBudgets()
		}
		return result
	case *storepb.Query_ListAlarms:
		return &storepb.Result{Alarms: r.alarms.byNumber.Values()}
	case *storepb.Query_ListLocks:
		return r.listLocks(q.ListLocks)
	case *storepb.Query_PreviewRule:
		return r.previewRule(q.PreviewRule)
	case *storepb.Query_GetLock:
		return r.getLock(q.GetLock)
	case *storepb.Query_ListProcesses:
		return r.listProcesses(q.ListProcesses.GetHost())
	case *storepb.Query_AwaitLock:
		return fail(r.locks.Await(q.AwaitLock))
	case *storepb.Query_TestLock:
		return r.testLock(q.TestLock)
	case *storepb.Query_ListAdvisoryLocks:
		return r.listAdvisories(q.ListAdvisoryLocks)
	case *storepb.Query_TestChange:
		return r.testChange(q.TestChange)
	case *storepb.Query_ListEvents:
		return r.listEvents(q.ListEvents)
	case *storepb.Query_GetCluster:
		return &storepb.Result{Cluster: r.trust.Cluster()}
	case *storepb.Query_ListAuthorities:
		return &storepb.Result{Authorities: r.trust.Authorities()}
	case *storepb.Query_ListTokens:
		return &storepb.Result{Tokens: r.trust.Tokens()}
	case *storepb.Query_GetAdmission:
		return r.getAdmission(q.GetAdmission.GetName())
	case *storepb.Query_ListAdmissions:
		return r.listAdmissions(q.ListAdmissions)
	default:
		return fail(storepb.Code_UNKNOWN_COMMAND)
	}
}

func (r queryEngine) lookup(q *storepb.Lookup) *storepb.Result {
	dir, code := r.tree.directory(ids.Inode(q.GetParent()))
	if code != storepb.Code_OK {
		return fail(code)
	}
	ino := ids.Inode(0)
	switch string(q.GetName()) {
	case ".":
		ino = dir.ino
	case "..":
		ino = dir.parent
	default:
		if len(q.GetName()) > MaxName {
			return fail(storepb.Code_NAME_TOO_LONG)
		}
		e, found := r.tree.entry(dir.ino, q.GetName())
		if !found {
			return fail(storepb.Code_NOT_FOUND)
		}
		result := r.read(e.ino, nil)
		result.Observations = r.observations(e)
		return result
	}
	return r.read(ino, nil)
}

// read returns the attributes, and for a Read also the content unless the caller knows it.
func (r queryEngine) read(ino ids.Inode, q *storepb.Read) *storepb.Result {
	in, found := r.tree.inode(ino)
	if !found {
		return fail(storepb.Code_NOT_FOUND)
	}
	result := &storepb.Result{Attr: in.attr()}
	if q != nil && in.version != ids.Index(q.GetKnownVersion()) {
		result.Content = in.content
	}
	return result
}

// readContent also returns the token of the name by which the caller knows the inode.
func (r queryEngine) readContent(q *storepb.Read) *storepb.Result {
	result := r.read(ids.Inode(q.GetIno()), q)
	if e, isNamed := r.tree.named(q.GetName(), ids.Inode(q.GetIno())); isNamed {
		result.Observations = r.observations(e)
		result.Observations[0].Empty = result.GetAttr().GetSize() == 0
	}
	return result
}

func (r queryEngine) readDir(q *storepb.ReadDir) *storepb.Result {
	dir, found := r.tree.inode(ids.Inode(q.GetIno()))
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
	add := func(name string, ino ids.Inode, cookie uint64, mode uint32) bool {
		if cookie > q.GetAfter() {
			entries = append(entries, &storepb.DirEntry{
				Name: []byte(name), Ino: uint64(ino), Cookie: cookie, Mode: mode & syscall.S_IFMT,
			})
		}
		return len(entries) < limit
	}
	if add(".", dir.ino, cookieSelf, dir.mode) && add("..", dir.parent, cookieParent, dir.mode) {
		after := &entry{parent: dir.ino, cookie: max(q.GetAfter(), cookieParent) + 1}
		r.tree.byCookie.Ascend(after, func(e *entry) bool {
			if e.parent != dir.ino {
				return false
			}
			in, found := r.tree.inode(e.ino)
			return !found || add(e.name, e.ino, e.cookie, in.mode)
		})
	}
	return &storepb.Result{Entries: entries}
}
