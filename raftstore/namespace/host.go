package namespace

import (
	"fmt"
	"math"

	"lockfs/raftstore/storepb"
)

// maxHosts bounds the hosts without a session that are remembered.
const maxHosts = 10_000

// host is a machine that has or had a mount. It is never modified once it is in a tree.
type host struct {
	bootID   string
	machine  string // whose name it is now, by the id that it came with in this boot; another one may have had the name before
	sessions int    // that have not ended
	since    int64  // since when it has one, or has none
	left     bool   // the last one was ended by its mount
}

// hostCame counts a session that was opened. Only while a host has none can it come with another boot; then no process
// of an earlier one of the same machine lives. Of another machine that has the name now it tells nothing.
func (ns *Namespace) hostCame(name, bootID, machine string) {
	h, known := ns.hosts.Get(name)
	if !known {
		ns.dropOldHosts()
		h = &host{bootID: bootID, machine: machine, since: ns.time, left: true}
	}
	came := *h
	came.sessions++
	if h.bootID == bootID {
		machine = h.machine // two machines have no boot in common, whatever ids their mounts know
	}
	if h.sessions == 0 {
		came.since, came.bootID, came.machine = ns.time, bootID, machine
		if !h.left {
			ns.emit(&storepb.Event{Event: eventHostBack, Host: name})
		}
	}
	ns.hosts.Set(name, &came)
	reason := fmt.Sprintf("its host %s has booted since", name)
	var lost []held
	for _, held := range ns.heldOn(name, nil) {
		if held.says.process.bootID.String() != bootID && held.says.machine.String() == machine {
			lost = append(lost, held)
		}
	}
	ns.loseProcesses(lost, reason)
	var made []made
	for _, m := range ns.madeOn(name, nil) {
		if e, found := ns.entry(m.parent, []byte(m.name)); found && m.by.bootID.String() != bootID && e.maker.machine.String() == machine {
			made = append(made, m)
		}
	}
	ns.bereave(made, math.MaxInt64, reason)
}

// machineOf is the machine that has a name now, empty if that is not known.
func (ns *Namespace) machineOf(name string) sharedString {
	if h, known := ns.hosts.Get(name); known {
		return share(h.machine)
	}
	return sharedString{}
}

// hostWent counts a session less. A host that left and has nothing to be waited for is forgotten.
func (ns *Namespace) hostWent(name string, left bool) {
	h, known := ns.hosts.Get(name)
	if !known {
		return
	}
	went := *h
	went.sessions--
	if went.sessions == 0 {
		went.since, went.left = ns.time, left
	}
	ns.hosts.Set(name, &went)
	switch {
	case went.sessions > 0:
	case !left:
		ns.emit(&storepb.Event{Event: eventHostUnreachable, Host: name, Reason: "no keepalive for the term of its session"})
	case !ns.holdsAny(name):
		ns.hosts.Delete(name)
	}
}

// dropOldHosts makes room among those that have neither a session nor a lock.
func (ns *Namespace) dropOldHosts() {
	if ns.hosts.Len() < maxHosts+ns.Sessions() {
		return
	}
	oldest, since, found := "", int64(0), false
	ns.hosts.Scan(func(name string, h *host) bool {
		if h.sessions == 0 && (!found || h.since < since) && !ns.holdsAny(name) {
			oldest, since, found = name, h.since, true
		}
		return true
	})
	if found {
		ns.hosts.Delete(oldest)
	}
}

// mayCome refuses a session of a host that is still there with another boot: it may be another machine
// of the same name, and the processes of the one are not those of the other.
func (ns *Namespace) mayCome(name, bootID string) *storepb.Result {
	h, known := ns.hosts.Get(name)
	if !known || h.sessions == 0 || h.bootID == bootID {
		return nil
	}
	return &storepb.Result{Code: storepb.Code_BUSY, Message: fmt.Sprintf(
		"a host named %q is mounted that was booted another time: if it is this one before it crashed, its session ends soon;"+
			" if it is another machine, give one of them another --name", name)}
}

func (ns *Namespace) forgetHost(by *storepb.Caller, name string) *storepb.Result {
	h, known := ns.hosts.Get(name)
	switch {
	case !known:
		return &storepb.Result{Code: storepb.Code_NOT_FOUND, Message: fmt.Sprintf("no host is named %.300q; see `lockfs host list`", name)}
	case h.sessions > 0:
		return &storepb.Result{Code: storepb.Code_BUSY, Message: fmt.Sprintf(
			"host %q is mounted: it is not gone; unmount it there, or cut it off and wait until its session ends", name)}
	}
	ns.emit(&storepb.Event{Event: eventHostForgotten, Host: name, By: withoutLineage(by)})
	reason := fmt.Sprintf("its host %s was declared gone for good", name)
	ns.loseProcesses(ns.heldOn(name, nil), reason)
	ns.bereave(ns.madeOn(name, nil), math.MaxInt64, reason)
	ns.hosts.Delete(name)
	return ok()
}

// reachable tells whether the host of a lock has a session, and its process is watched.
func (ns *Namespace) reachable(g governed) bool {
	h, known := ns.hosts.Get(g.Host)
	return known && h.sessions > 0 && (g.process == nil || ns.isWatched(g.Host, g.process.processID))
}

// isWatched tells whether a mount of a host sees a process end: one of the same boot, and in the pid namespace in which the process
// was found. Nobody sees those of a container any more in which the mount was, too, and which was started anew.
func (ns *Namespace) isWatched(host string, p processID) (watched bool) {
	ns.sessions.Scan(func(_ uint64, s *session) bool {
		watched = s.endedIndex == 0 && s.host == host && s.bootID == p.bootID.String() &&
			(s.namespace == 0 || s.namespace == p.pidNamespace)
		return !watched
	})
	return watched
}

func (ns *Namespace) listHosts() []*storepb.HostRecord {
	var hosts []*storepb.HostRecord
	ns.hosts.Scan(func(name string, h *host) bool {
		hosts = append(hosts, h.message(name))
		return true
	})
	return hosts
}

func (h *host) message(name string) *storepb.HostRecord {
	return &storepb.HostRecord{Name: name, BootId: h.bootID, Sessions: uint32(h.sessions), Since: h.since, Left: h.left, Machine: h.machine}
}
