package namespace

import (
	"maps"
	"slices"
	"syscall"
	"time"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// model is the namespace as the manual pages describe it, kept in plain maps: names point to nodes, and
// everything else (link counts, parents, sizes) is counted when it is asked for.
type model struct {
	now       int64
	index     uint64
	lastIno   uint64
	lastPlace uint64
	limits    modelLimits

	maxSessions        uint64
	maxSessionsPerHost uint64
	nodes              map[uint64]*node
	sessions           map[uint64]*modelSession
	members            map[string]string // name by id
	wasLock            func(ino uint64) bool
}

type node struct {
	ino                        uint64
	mode, uid, gid, budgetUID  uint32
	atime, mtime, ctime, btime int64
	version                    uint64
	content                    string
	evidence                   string
	xattrs                     map[string]string
	names                      map[string]place // of a directory
	removed                    *removal         // nil while it has a name
	changed                    uint64           // index of the command that set ctime
	reserve                    string           // host in whose part of the reserve it is
}

// place is what a name stands for: an inode, since the command that gave it to the name, and the name's
// turn in listings, which is the same from the time the name came until it goes.
type place struct{ ino, turn, since uint64 }

type removal struct {
	by, index uint64
	at        int64
	pinned    map[uint64]bool // by session
	takenBack bool
}

type modelSession struct {
	host    string
	boot    string
	started int64 // of the process that has it
	acked   uint64
	active  uint64
	ended   *removal // nil while it lives
	replies map[uint64]*modelReply
}

type modelReply struct {
	result *storepb.Result
	undo   func() // nil if there is nothing to take back
}

// newModelOf returns a model of a namespace. The model knows no locks: it asks the namespace whether an inode without a name was one.
func newModelOf(ns *Namespace) *model {
	m := &model{
		lastIno: RootIno, lastPlace: cookieParent, maxSessions: DefaultMaxSessions, maxSessionsPerHost: DefaultMaxSessionsPerHost,
		nodes: map[uint64]*node{}, sessions: map[uint64]*modelSession{}, members: map[string]string{},
	}
	m.wasLock = func(ino uint64) bool {
		o, found := ns.tree.orphans.byIno.Get(ids.Inode(ino))
		return found && !o.data
	}
	m.nodes[RootIno] = &node{ino: RootIno, mode: rootMode, names: map[string]place{}, xattrs: map[string]string{}}
	return m
}

func (n *node) is(kind uint32) bool { return n.mode&syscall.S_IFMT == kind }

// links counts the names of a node.
func (m *model) links(n *node) uint32 {
	if n.removed != nil {
		return 0
	}
	count := uint32(0)
	if n.is(syscall.S_IFDIR) {
		count = 2
		for _, p := range n.names {
			if m.nodes[p.ino].is(syscall.S_IFDIR) {
				count++
			}
		}
		return count
	}
	for _, dir := range m.nodes {
		for _, p := range dir.names {
			if p.ino == n.ino {
				count++
			}
		}
	}
	return count
}

// parent is the directory that a directory is in; the root is in itself.
func (m *model) parent(n *node) *node {
	for _, dir := range m.nodes {
		for _, p := range dir.names {
			if p.ino == n.ino {
				return dir
			}
		}
	}
	return m.nodes[RootIno]
}

// within tells whether a directory is another one or somewhere below it.
func (m *model) within(dir, other *node) bool {
	for dir != other && dir.ino != RootIno {
		dir = m.parent(dir)
	}
	return dir == other
}

func (m *model) attr(n *node) *storepb.Attr {
	size := uint64(len(n.content))
	if n.is(syscall.S_IFDIR) {
		size = 4096
	}
	return &storepb.Attr{
		Ino: n.ino, Mode: n.mode, Nlink: m.links(n), Uid: n.uid, Gid: n.gid, Size: size,
		Atime: n.atime, Mtime: n.mtime, Ctime: n.ctime, Btime: n.btime, Version: n.version,
	}
}

// listing is the names of a directory in their turns.
func (n *node) listing() []string {
	return slices.SortedFunc(maps.Keys(n.names), func(a, b string) int {
		return int(n.names[a].turn) - int(n.names[b].turn)
	})
}

func (m *model) touch(n *node) {
	n.mtime = m.now
	m.change(n)
}

func (m *model) change(n *node) { n.ctime, n.changed = m.now, m.index }

// put gives a node a name: a new turn, or that of the name it replaces.
func (m *model) put(dir *node, name string, n *node) place {
	p, replaces := dir.names[name]
	if !replaces {
		m.lastPlace++
		p.turn = m.lastPlace
	}
	p.ino, p.since = n.ino, m.index
	dir.names[name] = p
	m.touch(dir)
	m.change(n)
	return p
}

// drop takes a name from a node. It answers the node's number if that was the last one.
func (m *model) drop(session uint64, dir *node, name string) uint64 {
	n := m.nodes[dir.names[name].ino]
	delete(dir.names, name)
	m.touch(dir)
	m.change(n)
	if n.is(syscall.S_IFREG) || !n.is(syscall.S_IFDIR) {
		if m.links(n) > 0 {
			return 0
		}
	}
	n.removed = &removal{by: session, index: m.index, at: m.now, pinned: map[uint64]bool{}}
	return n.ino
}

// expire forgets removed nodes that nobody keeps.
func (m *model) expire() {
	var waiting []*node
	for _, n := range m.nodes {
		if n.removed != nil && len(n.removed.pinned) == 0 {
			waiting = append(waiting, n)
		}
	}
	slices.SortFunc(waiting, func(a, b *node) int { return int(a.removed.index) - int(b.removed.index) })
	for i, n := range waiting {
		if m.now-n.removed.at > int64(30*time.Second) || len(waiting)-i > orphanLimit {
			delete(m.nodes, n.ino)
		}
	}
}

// apply does a command. Refusals are the codes that are right answers to one that must not be done; if
// there are none, want is the right answer.
func (m *model) apply(index uint64, cmd *storepb.Command) (want *modelReply, refusals []storepb.Code) {
	m.index = index
	m.now = max(m.now, cmd.GetTime())
	if root := m.nodes[RootIno]; root.btime == 0 { // made when time began
		root.atime, root.mtime, root.ctime, root.btime = m.now, m.now, m.now, m.now
	}
	m.expire()
	m.forgetSessions()
	s := m.sessions[cmd.GetSession()]
	switch {
	case cmd.GetSession() == 0 || unnumbered(cmd):
		return m.operate(cmd)
	case s == nil:
		return nil, []storepb.Code{storepb.Code_SESSION_FORGOTTEN}
	case cmd.GetSeq() <= s.acked:
		return nil, []storepb.Code{storepb.Code_DUPLICATE}
	case s.replies[cmd.GetSeq()] != nil:
		s.active = m.index
		return s.replies[cmd.GetSeq()], nil
	case s.ended != nil:
		return nil, []storepb.Code{storepb.Code_SESSION_UNKNOWN}
	}
	s.active = m.index
	s.acked = max(s.acked, min(cmd.GetAcked(), cmd.GetSeq()-1))
	maps.DeleteFunc(s.replies, func(seq uint64, _ *modelReply) bool { return seq <= s.acked })
	return m.operate(cmd)
}

// unnumbered tells the commands that may simply be done again.
func unnumbered(cmd *storepb.Command) bool {
	op := cmd.GetOp()
	return op.GetOpenSession() != nil || op.GetCloseSession() != nil || op.GetCancel() != nil
}

// settle remembers what was answered to a command that a retry may repeat.
func (m *model) settle(cmd *storepb.Command, got *storepb.Result, want *modelReply) {
	s := m.sessions[cmd.GetSession()]
	if s == nil || cmd.GetSeq() <= s.acked || unnumbered(cmd) || s.replies[cmd.GetSeq()] != nil {
		return
	}
	if s.ended != nil && s.ended.index != m.index {
		return
	}
	kept := &modelReply{result: withoutObservations(got)}
	if want != nil {
		kept.undo = want.undo
	}
	s.replies[cmd.GetSeq()] = kept
}

func (m *model) openSession(id uint64, op *storepb.OpenSession) (no complaints) {
	s := m.sessions[id]
	if s == nil {
		ofHost := uint64(0)
		for _, other := range m.sessions {
			if other.host == op.GetHost() && other.ended == nil {
				ofHost++
			}
		}
		no.when(m.live() >= m.maxSessions || ofHost >= m.maxSessionsPerHost, storepb.Code_TOO_MANY_REQUESTS)
		for _, other := range m.sessions {
			another := other.host == op.GetHost() && other.boot != op.GetBootId()
			no.when(another && other.ended == nil, storepb.Code_BUSY)
		}
		if no == nil {
			m.sessions[id] = &modelSession{
				host: op.GetHost(), boot: op.GetBootId(), started: op.GetStarted(), active: m.index, replies: map[uint64]*modelReply{},
			}
		}
		return no
	}
	no.when(s.ended != nil || s.boot != op.GetBootId() || op.GetStarted() < s.started, storepb.Code_SESSION_UNKNOWN)
	if no == nil {
		s.active = m.index
		if op.GetStarted() > s.started {
			m.unpin(id)
		}
		s.started = op.GetStarted()
	}
	return no
}

func (m *model) closeSession(id uint64) []storepb.Code {
	if m.sessions[id] == nil {
		return []storepb.Code{storepb.Code_SESSION_UNKNOWN}
	}
	delete(m.sessions, id)
	m.unpin(id)
	return nil
}

func (m *model) endSession(op *storepb.EndSession) (no complaints) {
	s := m.sessions[op.GetId()]
	if s == nil || s.ended != nil {
		return complaints{storepb.Code_SESSION_UNKNOWN}
	}
	no.when(s.active != op.GetIfActive(), storepb.Code_CONFLICT)
	if no == nil {
		s.ended = &removal{index: m.index, at: m.now}
		m.unpin(op.GetId())
	}
	return no
}

func (m *model) live() (count uint64) {
	for _, s := range m.sessions {
		if s.ended == nil {
			count++
		}
	}
	return count
}

// forgetSessions drops the sessions that ended long ago.
func (m *model) forgetSessions() {
	for {
		oldest := uint64(0)
		for id, s := range m.sessions {
			if s.ended != nil && (oldest == 0 || s.ended.index < m.sessions[oldest].ended.index) {
				oldest = id
			}
		}
		s := m.sessions[oldest]
		if s == nil || m.now-s.ended.at <= int64(7*24*time.Hour) {
			return
		}
		delete(m.sessions, oldest)
	}
}

func (m *model) unpin(session uint64) {
	for _, n := range m.nodes {
		if n.removed != nil {
			delete(n.removed.pinned, session)
		}
	}
}

func (m *model) cancel(session, seq uint64) []storepb.Code {
	s := m.sessions[session]
	if s == nil {
		return []storepb.Code{storepb.Code_SESSION_FORGOTTEN}
	}
	if seq <= s.acked {
		return []storepb.Code{storepb.Code_DUPLICATE}
	}
	s.active = m.index
	if done := s.replies[seq]; done != nil && done.undo != nil {
		done.undo()
	}
	s.replies[seq] = &modelReply{result: &storepb.Result{Code: storepb.Code_CANCELLED}}
	return nil
}

func (m *model) keep(session, ino uint64, pinned bool) []storepb.Code {
	n := m.nodes[ino]
	if n == nil || n.removed == nil || pinned && n.removed.takenBack || !pinned && !n.removed.pinned[session] {
		return []storepb.Code{storepb.Code_STALE}
	}
	if pinned {
		n.removed.pinned[session] = true
	} else {
		delete(n.removed.pinned, session)
	}
	return nil
}
