package namespace

import (
	"fmt"
	"time"

	"lockfs/raftstore/fault"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

const (
	// MaxReplies is how many replies a session may leave unacknowledged.
	MaxReplies = 4096
	// DefaultMaxSessions can be changed by a SetLimits command.
	DefaultMaxSessions = 10_000

	// How long it is known what a session has done that was given up on, for its mount to learn what became of the calls that
	// were under way. It may come back for as long as its host is up, which may have been suspended. What comes back later,
	// or after so many others (each counts as one more than the replies it has not acknowledged), is told that nobody
	// knows (SESSION_FORGOTTEN), and does nothing twice.
	endedAge   = 7 * 24 * time.Hour
	endedLimit = 128 << 10
)

// session is one mount, from its start to its end. It is never modified once it is in a tree.
type session struct {
	id         uint64
	host       string
	bootID     string
	opened     int64
	acked      uint64 // replies up to this number are gone
	active     uint64 // index of its last command
	replies    int    // kept now
	endedIndex uint64 // 0: it has not ended
	ended      int64
	started    int64 // of the process that has it, on its host's CLOCK_BOOTTIME
	machine    string
	namespace  uint64 // of the processes whose end its own sees; 0: it is not known
	noDelay    bool   // its advisory locks are of no account once it has ended
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
	if cmd.GetSession() == 0 {
		return ns.applyWithoutSession(cmd)
	}
	switch op := cmd.GetOp().GetOp().(type) {
	case *storepb.Op_OpenSession:
		return ns.openSession(cmd.GetSession(), op.OpenSession)
	case *storepb.Op_CloseSession:
		return ns.closeSession(cmd.GetSession(), op.CloseSession)
	case *storepb.Op_Cancel:
		return ns.cancel(cmd.GetSession(), op.Cancel.GetSeq())
	}
	s, found := ns.sessions.Get(cmd.GetSession())
	if !found {
		return fail(storepb.Code_SESSION_FORGOTTEN)
	}
	if cmd.GetSeq() <= s.acked {
		return fail(storepb.Code_DUPLICATE)
	}
	if first, done := ns.reply(cmd.GetSession(), cmd.GetSeq()); done && !fault.NoDedup {
		ns.acknowledge(s, 0)
		return first.result
	}
	if s.endedIndex != 0 {
		return fail(storepb.Code_SESSION_UNKNOWN)
	}
	s = ns.acknowledge(s, min(cmd.GetAcked(), cmd.GetSeq()-1))
	if s.replies >= MaxReplies {
		return fail(storepb.Code_TOO_MANY_REQUESTS)
	}
	result, undo := ns.applyOp(cmd)
	ns.keepReply(&reply{session: cmd.GetSession(), seq: cmd.GetSeq(), result: result, undo: undo})
	return result
}

// applyWithoutSession does what the leader itself proposes.
func (ns *Namespace) applyWithoutSession(cmd *storepb.Command) *storepb.Result {
	switch cmd.GetOp().GetOp().(type) {
	case *storepb.Op_OpenSession, *storepb.Op_CloseSession, *storepb.Op_Cancel:
		return fail(storepb.Code_INVALID)
	}
	result, _ := ns.applyOp(cmd)
	return result
}

func (ns *Namespace) reply(session, seq uint64) (*reply, bool) {
	return ns.replies.Get(&reply{session: session, seq: seq})
}

func (ns *Namespace) keepReply(r *reply) {
	s, found := ns.sessions.Get(r.session)
	if !found {
		return
	}
	if _, replaced := ns.replies.Set(r); !replaced {
		changed := *s
		changed.replies++
		ns.sessions.Set(s.id, &changed)
		if s.endedIndex != 0 {
			ns.endedKept++
		}
	}
}

// acknowledge notes that a session is at work, and drops the replies that it has received.
func (ns *Namespace) acknowledge(s *session, acked uint64) *session {
	changed := *s
	changed.active = ns.index
	if acked > s.acked {
		changed.acked = acked
		changed.replies -= ns.dropReplies(s.id, acked)
	}
	ns.sessions.Set(s.id, &changed)
	return &changed
}

// dropReplies drops those to the numbers up to seq and answers how many there were.
func (ns *Namespace) dropReplies(session, seq uint64) int {
	var old []*reply
	ns.replies.Ascend(&reply{session: session}, func(r *reply) bool {
		if r.session != session || r.seq > seq {
			return false
		}
		old = append(old, r)
		return true
	})
	for _, r := range old {
		ns.replies.Delete(r)
	}
	return len(old)
}

func (ns *Namespace) openSession(id uint64, op *storepb.OpenSession) *storepb.Result {
	s, found := ns.sessions.Get(id)
	switch {
	case id == 0 || len(op.GetHost()) > MaxName || len(op.GetBootId()) > MaxName || len(op.GetMachine()) > MaxName:
		return fail(storepb.Code_INVALID)
	case !found && uint64(ns.Sessions()) >= ns.maxSessions:
		return &storepb.Result{Code: storepb.Code_TOO_MANY_REQUESTS, Message: fmt.Sprintf(
			"there are %d sessions already; see `lockfs session list`, or raise --max-sessions on the servers", ns.Sessions())}
	case !found:
		if refused := ns.mayCome(op.GetHost(), op.GetBootId()); refused != nil {
			return refused
		}
		ns.sessions.Set(id, &session{
			id: id, host: op.GetHost(), bootID: op.GetBootId(), opened: ns.time, active: ns.index, started: op.GetStarted(),
			noDelay: op.GetNoLockDelay(), machine: op.GetMachine(), namespace: op.GetPidNamespace(),
		})
		ns.hostCame(op.GetHost(), op.GetBootId(), op.GetMachine())
	case s.endedIndex != 0 || s.bootID != op.GetBootId() || op.GetStarted() < s.started:
		return fail(storepb.Code_SESSION_UNKNOWN)
	case op.GetStarted() > s.started:
		ns.succeedProcess(s, op)
	default:
		ns.acknowledge(s, 0) // it asks again
	}
	return ok()
}

// succeedProcess gives a session to another process. What the one before had open is closed, but the
// programs that had locks may still run, with descriptors that are dead.
func (ns *Namespace) succeedProcess(s *session, op *storepb.OpenSession) {
	ns.unpinOrphansOf(s.id)
	ns.locks.DropAll(ids.Session(s.id), ns.delayAfter(s))
	s = ns.acknowledge(s, 0)
	succeeded := *s
	succeeded.started, succeeded.namespace = op.GetStarted(), op.GetPidNamespace()
	ns.sessions.Set(s.id, &succeeded)
}

// delayAfter is for how long nobody gets the advisory locks of a session that ends while programs may rely on them.
func (ns *Namespace) delayAfter(s *session) int64 {
	if s.noDelay {
		return 0
	}
	return ns.lockDelay
}

func (ns *Namespace) closeSession(id uint64, op *storepb.CloseSession) *storepb.Result {
	s, found := ns.sessions.Get(id)
	if !found {
		return fail(storepb.Code_SESSION_UNKNOWN)
	}
	delay := int64(0)
	if op.GetInUse() {
		delay = ns.delayAfter(s)
	}
	ns.unpinOrphansOf(id)
	ns.locks.DropAll(ids.Session(id), delay)
	ns.dropSession(id)
	if s.endedIndex == 0 {
		ns.hostWent(s.host, true)
	}
	return ok()
}

// endSession gives up on a mount. What it has not acknowledged stays, so that it can learn what became
// of its calls should it come back.
func (ns *Namespace) endSession(op *storepb.EndSession) *storepb.Result {
	s, found := ns.sessions.Get(op.GetId())
	switch {
	case !found || s.endedIndex != 0:
		return fail(storepb.Code_SESSION_UNKNOWN)
	case s.active != op.GetIfActive():
		return fail(storepb.Code_CONFLICT)
	}
	ns.unpinOrphansOf(s.id)
	ns.locks.DropAll(ids.Session(s.id), ns.delayAfter(s))
	ended := *s
	ended.endedIndex, ended.ended = ns.index, ns.time
	ns.sessions.Set(s.id, &ended)
	ns.addEnded(&ended)
	ns.emit(&storepb.Event{
		Event: eventSessionEnded, Host: s.host, Reason: fmt.Sprintf("session %016x: no keepalive for its term", s.id),
	})
	ns.hostWent(s.host, false)
	return ok()
}

// dropExpiredSessions runs with every command, like dropExpiredOrphans.
func (ns *Namespace) dropExpiredSessions() {
	for {
		_, id, found := ns.endedSessions.Min()
		if !found {
			return
		}
		s, found := ns.sessions.Get(id)
		if found && ns.endedKept <= endedLimit && ns.time-s.ended <= int64(endedAge) {
			return
		}
		ns.dropSession(id)
	}
}

// addEnded counts a session among those that have ended.
func (ns *Namespace) addEnded(s *session) {
	ns.endedSessions.Set(s.endedIndex, s.id)
	ns.endedKept += 1 + s.replies
}

func (ns *Namespace) dropSession(id uint64) {
	if s, found := ns.sessions.Delete(id); found && s.endedIndex != 0 {
		ns.endedSessions.Delete(s.endedIndex)
		ns.endedKept -= 1 + s.replies
	}
	ns.dropReplies(id, ^uint64(0))
}

// cancel settles a number whose reply the session will not use.
func (ns *Namespace) cancel(session, seq uint64) *storepb.Result {
	s, found := ns.sessions.Get(session)
	if !found {
		return fail(storepb.Code_SESSION_FORGOTTEN)
	}
	if seq <= s.acked {
		return fail(storepb.Code_DUPLICATE)
	}
	ns.acknowledge(s, 0)
	done, found := ns.reply(session, seq)
	switch {
	case !found && s.replies >= 2*MaxReplies:
		return fail(storepb.Code_TOO_MANY_REQUESTS)
	case found && done.undo != nil && !fault.IgnoreCancel:
		ns.takeBack(session, done.undo)
	}
	ns.locks.Cancel(ids.Session(session), ids.Sequence(seq))
	ns.keepReply(&reply{session: session, seq: seq, result: fail(storepb.Code_CANCELLED)})
	return ok()
}

// takenBack is why lockfs itself undoes what a program did.
const takenBack = "it was taken back: nobody was told of it"

func undoOf(made *entry) *storepb.Undo {
	return &storepb.Undo{Ino: made.ino, Parent: made.parent, Name: []byte(made.name), MadeIndex: made.made}
}

// takeBack undoes an exclusive creation nobody was told about, unless somebody has made something of it since: given the name
// to another inode, or to the same one again, locked the inode or asked for that, or changed its content, attributes, names
// or entries. Who has only opened it cannot lock or write to it any more.
// Where a rename cannot go back because its old name is taken again, the new name goes: its caller
// believes that it never came to be.
func (ns *Namespace) takeBack(session uint64, undo *storepb.Undo) {
	e, found := ns.entry(undo.GetParent(), undo.GetName())
	if !found || e.ino != undo.GetIno() || e.made != undo.GetMadeIndex() {
		return
	}
	in, found := ns.inodes.Get(e.ino)
	if !found || in.changed != undo.GetMadeIndex() || ns.wasLockedAs(e, in) {
		return
	}
	if undo.GetBackParent() != 0 && ns.moveBack(e, in, undo) {
		return
	}
	if ns.isFull(in) {
		return
	}
	ns.emitReleased(e, in, nil, takenBack, "")
	ns.disown(ns.removeEntry(session, e, in))
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
	back := &entry{parent: undo.GetBackParent(), name: string(undo.GetBackName())}
	ns.move(nil, e, back, in, nil, &moving{
		maker: makerFrom(undo.GetBackMaker()), exclusive: undo.GetBackExclusive(), reason: takenBack,
	})
	return true
}
