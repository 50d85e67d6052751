package raftstore

import (
	"lockfs/raftstore/storepb"
)

// MaxReplies is how many replies a session may leave unacknowledged.
const MaxReplies = 4096

// session is one mount, from its start to its end. It is never modified once it is in a tree.
type session struct {
	id      uint64
	host    string
	bootID  string
	opened  int64
	acked   uint64 // replies up to this number are gone
	replies int    // kept now
}

// reply answers a command of a session, also when the same command comes again.
type reply struct {
	session uint64
	seq     uint64
	result  *storepb.Result
	undo    *storepb.Undo // nil unless the command made a name
}

func lessReply(a, b *reply) bool {
	if a.session != b.session {
		return a.session < b.session
	}
	return a.seq < b.seq
}

// applyOnce does a command of a session unless it was done before; then its first reply is the answer.
func (ns *Namespace) applyOnce(cmd *storepb.Command) *storepb.Result {
	if cmd.GetSession() == 0 || cmd.GetOp().GetOpenSession() != nil {
		result, _ := ns.applyOp(cmd)
		return result
	}
	s, found := ns.sessions.Get(cmd.GetSession())
	if !found {
		return fail(storepb.Code_SESSION_UNKNOWN)
	}
	if cmd.GetSeq() <= s.acked {
		return fail(storepb.Code_DUPLICATE)
	}
	if first, done := ns.reply(cmd.GetSession(), cmd.GetSeq()); done {
		return first.result
	}
	s = ns.acknowledge(s, min(cmd.GetAcked(), cmd.GetSeq()-1))
	if s.replies >= MaxReplies {
		return fail(storepb.Code_TOO_MANY_REQUESTS)
	}
	result, undo := ns.applyOp(cmd)
	ns.keepReply(&reply{session: s.id, seq: cmd.GetSeq(), result: result, undo: undo})
	return result
}

func (ns *Namespace) reply(session, seq uint64) (*reply, bool) {
	return ns.replies.Get(&reply{session: session, seq: seq})
}

// keepReply does nothing for a session that its own command ended.
func (ns *Namespace) keepReply(r *reply) {
	s, found := ns.sessions.Get(r.session)
	if !found {
		return
	}
	if _, replaced := ns.replies.Set(r); !replaced {
		changed := *s
		changed.replies++
		ns.sessions.Set(s.id, &changed)
	}
}

func (ns *Namespace) acknowledge(s *session, acked uint64) *session {
	if acked <= s.acked {
		return s
	}
	changed := *s
	changed.acked = acked
	for _, r := range ns.repliesOf(s.id, acked) {
		ns.replies.Delete(r)
		changed.replies--
	}
	ns.sessions.Set(s.id, &changed)
	return &changed
}

// repliesOf answers the replies to the numbers up to seq that a session has.
func (ns *Namespace) repliesOf(session, seq uint64) []*reply {
	var found []*reply
	ns.replies.Ascend(&reply{session: session}, func(r *reply) bool {
		if r.session != session || r.seq > seq {
			return false
		}
		found = append(found, r)
		return true
	})
	return found
}

func (ns *Namespace) openSession(id uint64, op *storepb.OpenSession) *storepb.Result {
	if id == 0 {
		return fail(storepb.Code_INVALID)
	}
	if _, found := ns.sessions.Get(id); !found {
		ns.sessions.Set(id, &session{id: id, host: op.GetHost(), bootID: op.GetBootId(), opened: ns.time})
	}
	return ok()
}

func (ns *Namespace) closeSession(id uint64) *storepb.Result {
	if _, found := ns.sessions.Delete(id); !found {
		return fail(storepb.Code_SESSION_UNKNOWN)
	}
	for _, r := range ns.repliesOf(id, ^uint64(0)) {
		ns.replies.Delete(r)
	}
	ns.unpinOrphansOf(id)
	return ok()
}

// cancel settles a number whose reply the session will not use. Doing it twice is no error.
func (ns *Namespace) cancel(session, seq uint64) *storepb.Result {
	s, found := ns.sessions.Get(session)
	if !found {
		return fail(storepb.Code_SESSION_UNKNOWN)
	}
	if seq <= s.acked {
		return fail(storepb.Code_DUPLICATE)
	}
	if done, found := ns.reply(session, seq); found && done.undo != nil {
		ns.takeBack(session, done.undo)
	}
	ns.keepReply(&reply{session: session, seq: seq, result: fail(storepb.Code_CANCELLED)})
	return ok()
}

func undoOf(made *entry) *storepb.Undo {
	return &storepb.Undo{Ino: made.ino, Parent: made.parent, Name: []byte(made.name), Cookie: made.cookie}
}

// takeBack undoes a creation nobody was told about, unless the name has become something else since: also
// the same inode under the same name again is another one's doing, and may be another one's lock.
// Where a rename cannot go back because its old name is taken again, the new name goes: its caller
// believes that it never came to be.
func (ns *Namespace) takeBack(session uint64, undo *storepb.Undo) {
	e, found := ns.entry(undo.GetParent(), undo.GetName())
	if !found || e.ino != undo.GetIno() || e.cookie != undo.GetCookie() {
		return
	}
	in, found := ns.inodes.Get(e.ino)
	if !found || undo.GetOnlyVersion() != 0 && in.version != undo.GetOnlyVersion() {
		return
	}
	if undo.GetBackParent() != 0 && ns.moveBack(e, in, undo) {
		return
	}
	if in.isDir() && ns.hasEntries(in.ino) {
		return
	}
	ns.removeEntry(session, e, in)
}

func (ns *Namespace) moveBack(e *entry, in *inode, undo *storepb.Undo) bool {
	if _, code := ns.directory(undo.GetBackParent()); code != storepb.Code_OK {
		return false
	}
	if _, taken := ns.entry(undo.GetBackParent(), undo.GetBackName()); taken {
		return false
	}
	if ns.mayMove(in, undo.GetBackParent()) != storepb.Code_OK {
		return false
	}
	ns.move(e, &entry{parent: undo.GetBackParent(), name: string(undo.GetBackName())}, in)
	return true
}
