package namespace

import (
	"bytes"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// listLocks leaves out directories with entries, which are listed themselves, unless the creator of the
// directory holds it. It leaves out data without advisory locks. It also leaves out temporary names: a
// program killed before it renamed such a name holds nothing by it.
func (r queryEngine) listLocks(q *storepb.ListLocks) *storepb.Result {
	if q.GetViewer() == nil {
		return missingViewer()
	}
	limit, view := page(q.GetLimit()), r.viewOf(q.GetViewer())
	if len(q.GetOnly()) > 0 {
		return r.onlyLock(string(q.GetOnly()), view)
	}
	var locks []*storepb.Lock
	bytes := 0
	from := &entry{parent: ids.Inode(q.GetAfterParent()), name: string(q.GetAfterName())}
	r.tree.listed.Ascend(from, func(e *entry) bool {
		if e.parent == from.parent && e.name == from.name {
			return true
		}
		if in, found := r.tree.inode(e.ino); found && (!r.tree.isFull(in) || r.isHeldByCreator(e, in)) && r.isListed(e, in) {
			if lock := view.lock(e, in); lock != nil {
				locks = append(locks, lock)
				bytes += proto.Size(lock)
			}
		}
		return len(locks) < limit && bytes < lockPageBytes
	})
	return &storepb.Result{Locks: locks}
}

// onlyLock returns the name with this path, if it is a lock or exclusive.
func (r queryEngine) onlyLock(path string, view *view) *storepb.Result {
	dir, e := ids.Inode(RootIno), (*entry)(nil)
	for name := range strings.SplitSeq(path, "/") {
		if e, _ = r.tree.entry(dir, []byte(name)); e == nil {
			return ok()
		}
		dir = e.ino
	}
	in, found := r.tree.inode(e.ino)
	if !found || !e.exclusive && !r.isListed(e, in) {
		return ok()
	}
	if lock := view.lock(e, in); lock != nil {
		return &storepb.Result{Locks: []*storepb.Lock{lock}}
	}
	return ok()
}

func (r queryEngine) isListed(e *entry, in *inode) bool {
	return r.hasAdvisories(in) || r.isLock(e, in) && !lockfact.IsTemporary(e.name)
}

func (r queryEngine) isHeldByCreator(e *entry, in *inode) bool { return r.effective(e, in).byCreator }

func (r queryEngine) getLock(q *storepb.GetLock) *storepb.Result {
	var e *entry
	if q.GetIno() != 0 {
		e = r.tree.nameOf(ids.Inode(q.GetIno()))
	} else {
		e, _ = r.tree.entry(ids.Inode(q.GetParent()), q.GetName())
	}
	if e == nil {
		return fail(storepb.Code_NOT_FOUND)
	}
	in, found := r.tree.inode(e.ino)
	if !found {
		return fail(storepb.Code_NOT_FOUND)
	}
	lock := r.describe(e, in)
	if in.isFile() && !q.GetBrief() {
		lock.Content = in.content
		lock.AdvisoryLocks = r.advisoriesOf(in.ino, advisoriesOfLock, anyFile)
	}
	return &storepb.Result{Attr: in.attr(), Locks: []*storepb.Lock{lock}, Observations: r.observations(e)}
}

// testChange reports whether any of these names is no longer the observed lock. With or_stale, a lock marked
// as stale counts as changed. The answer changes only with a name of ChangedNames.
func (r queryEngine) testChange(q *storepb.TestChange) *storepb.Result {
	for _, o := range q.GetSeen() {
		token := ids.Token(0)
		e, found := r.tree.entry(ids.Inode(o.GetParent()), o.GetName())
		if found {
			token = e.token
		}
		if token != ids.Token(o.GetToken()) || q.GetOrStale() && found && e.stale != nil {
			return ok()
		}
	}
	return fail(storepb.Code_WAITING)
}

func (r queryEngine) listProcesses(host string) *storepb.Result {
	result := ok()
	for _, p := range r.tree.byProcess.processesOn(host) {
		result.Processes = append(result.Processes, p.message())
	}
	return result
}

func (r queryEngine) listEvents(q *storepb.ListEvents) *storepb.Result {
	if q.GetViewer() == nil {
		return missingViewer()
	}
	limit, view := page(q.GetLimit()), r.viewOf(q.GetViewer())
	result := &storepb.Result{LastEvent: r.events.last}
	if q.GetAfter() >= r.events.last {
		return result
	}
	add := func(e *storepb.Event) bool {
		if e.Time >= q.GetSince() && isAbout(e, q) {
			if seen := view.event(e); seen != nil && concernsHost(seen, q.GetHost()) {
				result.Events = append(result.Events, seen)
			}
		}
		return len(result.Events) < limit
	}
	if q.GetBefore() != 0 {
		r.events.kept.Descend(q.GetBefore()-1, func(number uint64, e *storepb.Event) bool { return number > q.GetAfter() && add(e) })
		return result
	}
	r.events.kept.Ascend(q.GetAfter()+1, func(_ uint64, e *storepb.Event) bool { return add(e) })
	return result
}

// isAbout reports whether an event is of a requested kind and has a requested path.
func isAbout(e *storepb.Event, q *storepb.ListEvents) bool {
	rest, isBelow := bytes.CutPrefix(e.GetPath(), q.GetBelow())
	return (len(q.GetKinds()) == 0 || slices.Contains(q.GetKinds(), e.GetEvent())) &&
		(len(q.GetPath()) == 0 || bytes.Equal(e.GetPath(), q.GetPath())) &&
		(len(q.GetBelow()) == 0 || isBelow && (len(rest) == 0 || rest[0] == '/'))
}

// concernsHost reports whether an event is about a host, or caused by a call from it. Call it with the event
// as the viewer sees it: a match must not reveal a hidden host.
func concernsHost(seen *storepb.Event, host string) bool {
	return host == "" || seen.GetHost() == host || seen.GetBy().GetHost() == host
}
