package namespace

import (
	"fmt"
	"math"
	"time"

	"lockfs/raftstore/storepb"
)

// hostUp counts an opened session. Another boot is possible only while the host has no session and has been
// silent (checkNewBoot). Then no process of an earlier boot of the same machine lives. It says nothing about
// another machine that had the name.
func (ns *Namespace) hostUp(name, bootID, machine string) {
	h, known := ns.hosts.byName.Get(name)
	if !known {
		ns.dropOldHosts()
		h = &host{bootID: bootID, machine: machine, since: ns.time, left: true}
	}
	came := *h
	came.sessions++
	if h.bootID == bootID {
		machine = h.machine // two machines share no boot, whatever ids their mounts report
	}
	if h.sessions == 0 {
		came.since, came.bootID, came.machine = ns.time, bootID, machine
		if !h.left {
			ns.emit(&storepb.Event{Event: eventHostBack, Host: name})
		}
	}
	ns.hosts.byName.Set(name, &came)
	reason := fmt.Sprintf("its host %s has booted since", name)
	var lost []heldInode
	for _, held := range ns.tree.byProcess.heldInOtherBoots(name, bootID) {
		if held.says.machine.String() == machine {
			lost = append(lost, held)
		}
	}
	ns.processesGone(lost, reason, true)
	var made []createdName
	for _, m := range ns.tree.byProcess.createdInOtherBoots(name, bootID) {
		if e, found := ns.tree.entry(m.parent, []byte(m.name)); found && e.creator.machine.String() == machine {
			made = append(made, m)
		}
	}
	ns.creatorGone(made, math.MaxInt64, reason)
}

// checkNewBoot refuses a session of another boot of a machine whose mount has just ended its last session.
// Processes of the earlier boot may live on without a mount, if this is a clone of the machine and not a
// boot. After an expired session, the machine has been silent for long enough.
func (ns *Namespace) checkNewBoot(op *storepb.OpenSession) *storepb.Result {
	h, known := ns.hosts.byName.Get(op.GetHost())
	if !known || h.sessions > 0 || !h.left || h.bootID == op.GetBootId() || h.machine != op.GetMachine() {
		return nil
	}
	wait := h.since + op.GetSilence() - ns.time
	if wait <= 0 || !ns.tree.byProcess.holdsAny(op.GetHost()) {
		return nil
	}
	return &storepb.Result{Code: storepb.Code_BUSY, Message: fmt.Sprintf(
		"host %q was mounted in an earlier boot until just now, and processes of that boot hold locks. If the machine has booted again, its "+
			"mount is accepted within %v; if it still runs and this one is a clone, give this one a machine id and a --name of its own",
		op.GetHost(), time.Duration(wait).Round(time.Second))}
}

// hostDown counts an ended session. A host that left and holds nothing is deleted.
func (ns *Namespace) hostDown(name string, left bool) {
	h, known := ns.hosts.byName.Get(name)
	if !known {
		return
	}
	went := *h
	went.sessions--
	if went.sessions == 0 {
		went.since, went.left = ns.time, left
	}
	ns.hosts.byName.Set(name, &went)
	switch {
	case went.sessions > 0:
	case !left:
		ns.emit(&storepb.Event{Event: eventHostUnreachable, Host: name, Reason: "no keepalive for the term of its session"})
	case !ns.tree.byProcess.holdsAny(name):
		ns.hosts.byName.Delete(name)
	}
}

// dropOldHosts makes room among the hosts with neither a session nor a lock.
func (ns *Namespace) dropOldHosts() {
	if ns.hosts.byName.Len() < maxHosts+ns.sessions.live() {
		return
	}
	oldest, since, found := "", int64(0), false
	ns.hosts.byName.Scan(func(name string, h *host) bool {
		if h.sessions == 0 && (!found || h.since < since) && !ns.tree.byProcess.holdsAny(name) {
			oldest, since, found = name, h.since, true
		}
		return true
	})
	if found {
		ns.hosts.byName.Delete(oldest)
	}
}

func (ns *Namespace) forgetHost(by *storepb.Caller, name string) *storepb.Result {
	h, known := ns.hosts.byName.Get(name)
	switch {
	case !known:
		return &storepb.Result{Code: storepb.Code_NOT_FOUND, Message: fmt.Sprintf("no host is named %.300q; see `lockfs host list`", name)}
	case h.sessions > 0:
		return &storepb.Result{Code: storepb.Code_BUSY, Message: fmt.Sprintf(
			"host %q is mounted: it is not gone; unmount it there, or cut it off and wait until its session ends", name)}
	}
	ns.emit(&storepb.Event{Event: eventHostForgotten, Host: name, By: withoutLineage(by)})
	reason := fmt.Sprintf("its host %s was declared gone for good", name)
	ns.processesGone(ns.tree.byProcess.heldOn(name, nil), reason, true)
	ns.creatorGone(ns.tree.byProcess.createdOn(name, nil), math.MaxInt64, reason)
	ns.hosts.byName.Delete(name)
	return ok()
}
