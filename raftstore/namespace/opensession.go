package namespace

import (
	"fmt"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

func (ns *Namespace) openSession(id ids.Session, op *storepb.OpenSession) *storepb.Result {
	s, found := ns.sessions.byID.Get(id)
	switch {
	case id == 0 || len(op.GetHost()) > MaxName || len(op.GetBootId()) > MaxName || len(op.GetMachine()) > MaxName:
		return fail(storepb.Code_INVALID)
	case !versionsOf(op).Has(ns.version):
		return ns.unfit(fmt.Sprintf("the mount on %s", op.GetHost()), versionsOf(op))
	case !found && op.GetGoesOn():
		return fail(storepb.Code_SESSION_UNKNOWN)
	case !found && uint64(ns.sessions.live()) >= ns.sessions.most:
		return &storepb.Result{Code: storepb.Code_TOO_MANY_REQUESTS, Message: fmt.Sprintf(
			"there are %d sessions already; see `lockfs session list`, or raise --max-sessions on the servers", ns.sessions.live())}
	case !found:
		if exceeded := ns.roomForSession(op.GetHost()); exceeded != nil {
			return &storepb.Result{Code: storepb.Code_TOO_MANY_REQUESTS, Message: exceeded.Error()}
		}
		if refused := ns.hosts.checkSameBoot(op.GetHost(), op.GetBootId()); refused != nil {
			return refused
		}
		if refused := ns.checkNewBoot(op); refused != nil {
			return refused
		}
		ns.sessions.put(&session{
			id: id, host: op.GetHost(), bootID: op.GetBootId(), opened: ns.time, active: ns.index, started: op.GetStarted(),
			noDelay: op.GetNoLockDelay(), machine: op.GetMachine(), namespace: op.GetPidNamespace(), versions: versionsOf(op),
		})
		ns.hostUp(op.GetHost(), op.GetBootId(), op.GetMachine())
	case s.endedIndex != 0 || s.bootID != op.GetBootId() || op.GetStarted() < s.started:
		return fail(storepb.Code_SESSION_UNKNOWN)
	case op.GetStarted() > s.started && !op.GetGoesOn():
		ns.succeedProcess(s, op)
	default:
		again := *ns.sessions.acknowledge(ns.index, s, 0) // it asks again, or reports another program
		again.started, again.versions = op.GetStarted(), versionsOf(op)
		ns.sessions.put(&again)
	}
	return ok()
}

// succeedProcess gives a session to another process. The descriptors of the former process are closed.
// Programs that had locks may still run with dead descriptors.
func (ns *Namespace) succeedProcess(s *session, op *storepb.OpenSession) {
	ns.tree.unpinOrphansOf(s.id)
	ns.locks.DropAll(s.id, ns.sessions.delayAfter(s))
	s = ns.sessions.acknowledge(ns.index, s, 0)
	succeeded := *s
	succeeded.started, succeeded.namespace, succeeded.versions = op.GetStarted(), op.GetPidNamespace(), versionsOf(op)
	ns.sessions.put(&succeeded)
}

func (ns *Namespace) closeSession(id ids.Session, op *storepb.CloseSession) *storepb.Result {
	s, found := ns.sessions.byID.Get(id)
	if !found {
		return fail(storepb.Code_SESSION_UNKNOWN)
	}
	delay := int64(0)
	if op.GetInUse() {
		delay = ns.sessions.delayAfter(s)
	}
	ns.tree.unpinOrphansOf(id)
	ns.locks.DropAll(id, delay)
	ns.sessions.dropSession(id)
	if s.endedIndex == 0 {
		ns.hostDown(s.host, true)
	}
	return ok()
}

// endSession expires a session. Unacknowledged replies stay, so a returning mount learns the outcome of its
// calls.
func (ns *Namespace) endSession(op *storepb.EndSession) *storepb.Result {
	s, found := ns.sessions.byID.Get(ids.Session(op.GetId()))
	switch {
	case !found || s.endedIndex != 0:
		return fail(storepb.Code_SESSION_UNKNOWN)
	case s.active != ids.Index(op.GetIfActive()):
		return fail(storepb.Code_CONFLICT)
	}
	ns.tree.unpinOrphansOf(s.id)
	ns.locks.DropAll(s.id, ns.sessions.delayAfter(s))
	ended := *s
	ended.endedIndex, ended.ended = ns.index, ns.time
	ns.sessions.put(&ended)
	ns.sessions.addEnded(&ended)
	ns.emit(&storepb.Event{
		Event: eventSessionEnded, Host: s.host, Reason: fmt.Sprintf("session %016x: no keepalive for its term", s.id),
	})
	ns.hostDown(s.host, false)
	return ok()
}
