package namespace

import (
	"strings"
	"syscall"

	"lockfs/raftstore/storepb"
)

// complaints collects what is wrong with a command; which of several is answered does not matter.
type complaints []storepb.Code

func (c *complaints) when(wrong bool, code storepb.Code) {
	if wrong {
		*c = append(*c, code)
	}
}

// operate does a command's operation, or says why not.
func (m *model) operate(cmd *storepb.Command) (*modelReply, []storepb.Code) {
	done := &modelReply{result: &storepb.Result{}}
	var no complaints
	switch op := cmd.GetOp().GetOp().(type) {
	case *storepb.Op_Create:
		no = m.create(cmd, op.Create, done)
	case *storepb.Op_Link:
		no = m.link(cmd, op.Link, done)
	case *storepb.Op_Unlink:
		no = m.unlink(cmd, op.Unlink, done)
	case *storepb.Op_Rename:
		no = m.rename(cmd, op.Rename, done)
	case *storepb.Op_SetAttr:
		no = m.setAttr(cmd.GetCaller(), op.SetAttr, done)
	case *storepb.Op_SetContent:
		no = m.setContent(cmd, op.SetContent, done)
	case *storepb.Op_SetXattr:
		no = m.setXattr(cmd, op.SetXattr)
	case *storepb.Op_RemoveXattr:
		no = m.removeXattr(op.RemoveXattr)
	case *storepb.Op_Pin:
		no = m.keep(cmd.GetSession(), op.Pin.GetIno(), true)
	case *storepb.Op_Unpin:
		no = m.keep(cmd.GetSession(), op.Unpin.GetIno(), false)
	case *storepb.Op_EndSession:
		no = m.endSession(op.EndSession)
	case *storepb.Op_SetMember:
		no = m.setMember(op.SetMember.GetMember())
	case *storepb.Op_RemoveMember:
		delete(m.members, op.RemoveMember.GetId())
	case *storepb.Op_SetLimits:
		m.limits.set(op.SetLimits)
		if limit := op.SetLimits.GetMaxSessions(); limit != 0 {
			m.maxSessions = limit
		}
		if limit := op.SetLimits.GetMaxSessionsPerHost(); limit != 0 {
			m.maxSessionsPerHost = limit
		}
	default:
		no = m.operateUnnumbered(cmd)
	}
	if no != nil {
		return nil, no
	}
	return done, nil
}

func (m *model) operateUnnumbered(cmd *storepb.Command) complaints {
	op := cmd.GetOp()
	switch {
	case !unnumbered(cmd):
		return complaints{storepb.Code_UNKNOWN_COMMAND}
	case cmd.GetSession() == 0:
		return complaints{storepb.Code_INVALID}
	case op.GetOpenSession() != nil:
		return m.openSession(cmd.GetSession(), op.GetOpenSession())
	case op.GetCloseSession() != nil:
		return m.closeSession(cmd.GetSession())
	default:
		return m.cancel(cmd.GetSession(), op.GetCancel().GetSeq())
	}
}

// dir is a directory that names can be put into.
func (m *model) dir(ino uint64, no *complaints) *node {
	n := m.nodes[ino]
	switch {
	case n == nil:
		no.when(true, storepb.Code_NOT_FOUND)
	case !n.is(syscall.S_IFDIR):
		no.when(true, storepb.Code_NOT_DIRECTORY)
	case n.removed != nil:
		no.when(true, storepb.Code_NOT_FOUND)
	default:
		return n
	}
	return nil
}

func goodName(name string, no *complaints) {
	no.when(len(name) > 255, storepb.Code_NAME_TOO_LONG)
	no.when(name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00"), storepb.Code_INVALID)
}

func (m *model) create(cmd *storepb.Command, op *storepb.Create, done *modelReply) (no complaints) {
	name, kind := string(op.GetName()), op.GetMode()&syscall.S_IFMT
	goodName(name, &no)
	dir := m.dir(op.GetParent(), &no)
	if no != nil {
		return no
	}
	if there, taken := dir.names[name]; taken {
		return m.openThere(m.nodes[there.ino], op, done)
	}
	filled := len(op.GetContent()) > 0 || op.GetFacts() != nil
	no.when(len(op.GetContent()) > 256<<10, storepb.Code_FILE_TOO_BIG)
	no.when(filled && (kind != syscall.S_IFREG || !op.GetExclusive()), storepb.Code_INVALID)
	isLink := kind == syscall.S_IFLNK
	no.when(kind == 0 || kind == syscall.S_IFCHR || kind == syscall.S_IFBLK, storepb.Code_NOT_PERMITTED)
	no.when(isLink != (len(op.GetTarget()) > 0), storepb.Code_INVALID)
	no.when(op.GetMode() > 0o177777, storepb.Code_INVALID)
	no.when(len(op.GetTarget()) > 4095, storepb.Code_NAME_TOO_LONG)
	uid := cmd.GetCaller().GetUid()
	n := &node{uid: uid, budgetUID: cmd.GetCaller().GetBudgetUid()}
	m.roomForName(cmd, n, 1, max(1024, 512+len(op.GetTarget())+len(op.GetContent())+len(strings.Join(op.GetFacts().GetEvidence(), "")))+512, &no)
	if no != nil {
		return no
	}
	m.lastIno++
	n = &node{
		reserve: n.reserve, budgetUID: n.budgetUID, ino: m.lastIno, mode: op.GetMode(), uid: cmd.GetCaller().GetUid(), gid: cmd.GetCaller().GetGid(),
		atime: m.now, mtime: m.now, btime: m.now, version: m.index, xattrs: map[string]string{},
		content: string(op.GetTarget()) + string(op.GetContent()), evidence: strings.Join(op.GetFacts().GetEvidence(), ""),
	}
	if kind == syscall.S_IFDIR {
		n.names = map[string]place{}
	}
	if dir.mode&syscall.S_ISGID != 0 {
		n.gid = dir.gid
		if kind == syscall.S_IFDIR {
			n.mode |= syscall.S_ISGID
		}
	}
	m.nodes[n.ino] = n
	made := m.put(dir, name, n)
	done.result.Attr, done.result.Created = m.attr(n), true
	if op.GetExclusive() || kind != syscall.S_IFREG {
		done.undo = func() { m.takeBack(cmd.GetSession(), dir, name, made) }
	}
	return nil
}

// openThere is open(O_CREAT) of a name that is there.
func (m *model) openThere(n *node, op *storepb.Create, done *modelReply) (no complaints) {
	wantsFile := op.GetMode()&syscall.S_IFMT == syscall.S_IFREG && !op.GetExclusive()
	no.when(!wantsFile, storepb.Code_EXISTS)
	no.when(wantsFile && n.is(syscall.S_IFDIR), storepb.Code_IS_DIRECTORY)
	no.when(wantsFile && !n.is(syscall.S_IFDIR) && !n.is(syscall.S_IFREG), storepb.Code_STALE)
	if no == nil {
		done.result.Attr = m.attr(n)
	}
	return no
}

func (m *model) pinRemoved(session uint64, n *node, pin uint64) {
	if n.removed != nil && n.ino == pin {
		n.removed.pinned[session] = true
	}
}

// undo removes a name that a cancelled command made, if it is that one still and its inode as it was then.
func (m *model) takeBack(session uint64, dir *node, name string, made place) {
	if dir.removed != nil || dir.names[name] != made {
		return
	}
	n := m.nodes[made.ino]
	if n.changed == made.since && len(n.names) == 0 && m.drop(session, dir, name) != 0 {
		n.removed.by, n.removed.takenBack = 0, true
	}
}

func (m *model) fill(n *node, content, evidence string) {
	n.content, n.evidence, n.version = content, evidence, m.index
	m.touch(n)
}

func (m *model) link(cmd *storepb.Command, op *storepb.Link, done *modelReply) (no complaints) {
	name, n := string(op.GetName()), m.nodes[op.GetIno()]
	goodName(name, &no)
	dir := m.dir(op.GetParent(), &no)
	no.when(n == nil || n.removed != nil, storepb.Code_NOT_FOUND)
	no.when(n != nil && n.is(syscall.S_IFDIR), storepb.Code_NOT_PERMITTED)
	if dir != nil {
		_, taken := dir.names[name]
		no.when(taken, storepb.Code_EXISTS)
	}
	if no == nil {
		m.roomForName(cmd, n, 0, 512, &no)
	}
	if no != nil {
		return no
	}
	made := m.put(dir, name, n)
	done.result.Attr = m.attr(n)
	done.undo = func() { m.takeBack(cmd.GetSession(), dir, name, made) }
	return nil
}

func (m *model) unlink(cmd *storepb.Command, op *storepb.Unlink, done *modelReply) (no complaints) {
	dir := m.dir(op.GetParent(), &no)
	if dir == nil {
		return no
	}
	p, found := dir.names[string(op.GetName())]
	if !found {
		return complaints{storepb.Code_NOT_FOUND}
	}
	n := m.nodes[p.ino]
	no.when(op.GetDirectory() && !n.is(syscall.S_IFDIR), storepb.Code_NOT_DIRECTORY)
	no.when(!op.GetDirectory() && n.is(syscall.S_IFDIR), storepb.Code_IS_DIRECTORY)
	no.when(op.GetDirectory() && len(n.names) > 0, storepb.Code_NOT_EMPTY)
	if no == nil {
		done.result.RemovedIno = m.drop(cmd.GetSession(), dir, string(op.GetName()))
		m.pinRemoved(cmd.GetSession(), n, op.GetPin())
	}
	return no
}

func (m *model) setMember(member *storepb.Member) (no complaints) {
	no.when(member.GetId() == "" || member.GetName() == "", storepb.Code_INVALID)
	for id, name := range m.members {
		no.when(id != member.GetId() && name == member.GetName(), storepb.Code_BUSY)
	}
	if no == nil {
		m.members[member.GetId()] = member.GetName()
	}
	return no
}
