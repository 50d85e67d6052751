package namespace

import (
	"maps"
	"strings"
	"syscall"

	"lockfs/raftstore/storepb"
)

func (m *model) rename(cmd *storepb.Command, op *storepb.Rename, done *modelReply) (no complaints) {
	oldName, newName := string(op.GetName()), string(op.GetNewName())
	no.when(op.GetNoReplace() && op.GetExchange(), storepb.Code_INVALID)
	goodName(newName, &no)
	oldDir, newDir := m.dir(op.GetParent(), &no), m.dir(op.GetNewParent(), &no)
	if oldDir == nil || newDir == nil {
		return no
	}
	from, found := oldDir.names[oldName]
	to, taken := newDir.names[newName]
	no.when(!found, storepb.Code_NOT_FOUND)
	no.when(op.GetNoReplace() && taken, storepb.Code_EXISTS)
	no.when(op.GetExchange() && !taken, storepb.Code_NOT_FOUND)
	if no != nil || from.ino == to.ino {
		return no
	}
	moved, replaced := m.nodes[from.ino], m.nodes[to.ino]
	no.when(m.within(newDir, moved), storepb.Code_INVALID)
	if op.GetExchange() {
		no.when(m.within(oldDir, replaced), storepb.Code_INVALID)
		if no == nil {
			m.put(oldDir, oldName, replaced)
			m.put(newDir, newName, moved)
		}
		return no
	}
	if taken {
		movedDir, replacedDir := moved.is(syscall.S_IFDIR), replaced.is(syscall.S_IFDIR)
		no.when(movedDir && !replacedDir, storepb.Code_NOT_DIRECTORY)
		no.when(!movedDir && replacedDir, storepb.Code_IS_DIRECTORY)
		no.when(movedDir && len(replaced.names) > 0, storepb.Code_NOT_EMPTY)
	}
	if no != nil {
		return no
	}
	made := m.put(newDir, newName, moved)
	delete(oldDir.names, oldName)
	m.touch(oldDir)
	if taken {
		m.change(replaced)
		if replaced.is(syscall.S_IFDIR) || m.links(replaced) == 0 {
			replaced.removed = &removal{by: cmd.GetSession(), index: m.index, at: m.now, pinned: map[uint64]bool{}}
			done.result.RemovedIno = replaced.ino
			m.pinRemoved(cmd.GetSession(), replaced, op.GetPin())
		}
	}
	if op.GetNoReplace() {
		done.undo = func() { m.moveBack(cmd.GetSession(), newDir, newName, made, oldDir, oldName) }
	}
	return nil
}

// undoRename undoes a rename to a name that was free; where it cannot go back the new name just goes.
func (m *model) moveBack(session uint64, newDir *node, newName string, made place, oldDir *node, oldName string) {
	if newDir.removed != nil || newDir.names[newName] != made {
		return
	}
	moved := m.nodes[made.ino]
	if moved.changed != made.since {
		return
	}
	_, taken := oldDir.names[oldName]
	if oldDir.removed != nil || taken || m.within(oldDir, moved) {
		m.takeBack(session, newDir, newName, made)
		return
	}
	m.put(oldDir, oldName, moved)
	delete(newDir.names, newName)
	m.touch(newDir)
}

func (m *model) setAttr(by *storepb.Caller, op *storepb.SetAttr, done *modelReply) (no complaints) {
	n := m.nodes[op.GetIno()]
	no.when(n == nil, storepb.Code_NOT_FOUND)
	no.when(op.GetMode() > 0o7777, storepb.Code_INVALID)
	if no != nil {
		return no
	}
	if op.Mode != nil {
		n.mode = n.mode&syscall.S_IFMT | op.GetMode()
	}
	if op.Uid != nil {
		n.uid, n.budgetUID = op.GetUid(), by.GetBudgetUid()
	}
	if op.Gid != nil {
		n.gid = op.GetGid()
	}
	if op.Atime != nil {
		n.atime = op.GetAtime()
	}
	if op.GetAtimeNow() {
		n.atime = m.now
	}
	if op.Mtime != nil {
		n.mtime = op.GetMtime()
	}
	if op.GetMtimeNow() {
		n.mtime = m.now
	}
	m.change(n)
	done.result.Attr = m.attr(n)
	return nil
}

func (m *model) setContent(cmd *storepb.Command, op *storepb.SetContent, done *modelReply) (no complaints) {
	n := m.nodes[op.GetIno()]
	if n == nil || n.removed != nil && n.removed.by != cmd.GetSession() && (n.removed.takenBack || m.wasLock(n.ino)) {
		return complaints{storepb.Code_STALE}
	}
	isDir, isFile := n.is(syscall.S_IFDIR), n.is(syscall.S_IFREG)
	no.when(isDir, storepb.Code_IS_DIRECTORY)
	no.when(!isDir && !isFile, storepb.Code_INVALID)
	no.when(len(op.GetContent()) > 256*1024, storepb.Code_FILE_TOO_BIG)
	no.when(isFile && op.GetIfVersion() != n.version, storepb.Code_CONFLICT)
	if no == nil {
		before := n.bytes()
		changed := *n
		changed.content, changed.evidence = string(op.GetContent()), strings.Join(op.GetFacts().GetEvidence(), "")
		m.room(cmd, n.payer(), false, 0, changed.bytes()-before, &no)
	}
	if no == nil {
		m.fill(n, string(op.GetContent()), strings.Join(op.GetFacts().GetEvidence(), ""))
		done.result.Attr = m.attr(n)
	}
	return no
}

func (m *model) setXattr(cmd *storepb.Command, op *storepb.SetXattr) (no complaints) {
	n, name := m.nodes[op.GetIno()], string(op.GetName())
	no.when(n == nil, storepb.Code_NOT_FOUND)
	no.when(!strings.HasPrefix(name, "user."), storepb.Code_UNSUPPORTED)
	no.when(name == "user." || strings.Contains(name, "\x00"), storepb.Code_INVALID)
	no.when(len(name) > 255, storepb.Code_NAME_TOO_LONG)
	if no != nil {
		return no
	}
	_, exists := n.xattrs[name]
	no.when(exists && op.GetMustCreate(), storepb.Code_EXISTS)
	no.when(!exists && op.GetMustReplace(), storepb.Code_NO_ATTRIBUTE)
	total := len(name) + len(op.GetValue())
	for other, value := range n.xattrs {
		if other != name {
			total += len(other) + len(value)
		}
	}
	no.when(total > 4096, storepb.Code_NO_SPACE)
	if no == nil {
		changed := *n
		changed.xattrs = maps.Clone(n.xattrs)
		changed.xattrs[name] = string(op.GetValue())
		m.room(cmd, n.payer(), false, 0, changed.bytes()-n.bytes(), &no)
	}
	if no == nil {
		n.xattrs[name] = string(op.GetValue())
		m.change(n)
	}
	return no
}

func (m *model) removeXattr(op *storepb.RemoveXattr) (no complaints) {
	n := m.nodes[op.GetIno()]
	if n == nil {
		return complaints{storepb.Code_NOT_FOUND}
	}
	if _, exists := n.xattrs[string(op.GetName())]; !exists {
		return complaints{storepb.Code_NO_ATTRIBUTE}
	}
	delete(n.xattrs, string(op.GetName()))
	m.change(n)
	return nil
}
