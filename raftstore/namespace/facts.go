package namespace

import (
	"cmp"
	"encoding/binary"

	"google.golang.org/protobuf/proto"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/storepb"
)

// facts is what a file's content says about its lock, without any rule. It is never modified. A content
// of no format has none.
type facts struct {
	lockfact.Facts
	tag     string
	process *process     // the holder; nil unless the lock lives as long as it does and it was identified
	machine sharedString // that had the name of the host then; empty: it is not known
}

// processID is a process of some host, and never another one.
type processID struct {
	bootID       sharedString
	pidNamespace uint64
	pid          uint32
	start        uint64
}

// process is what is known of a process. It is never modified.
type process struct {
	processID
	seenFrom sharedString // the pid namespaces in which it has a pid (seenFromOf); empty: it is not known
}

func compareProcesses(p, q processID) int {
	return cmp.Or(
		cmp.Compare(p.bootID.String(), q.bootID.String()), cmp.Compare(p.pidNamespace, q.pidNamespace),
		cmp.Compare(p.pid, q.pid), cmp.Compare(p.start, q.start),
	)
}

func processFrom(m *storepb.Process) *process {
	if m == nil {
		return nil
	}
	id := processID{share(m.GetBootId()), m.GetPidNamespace(), m.GetPid(), m.GetStart()}
	return &process{id, seenFromOf(m.GetSeenFrom())}
}

func (p *process) message() *storepb.Process {
	if p == nil {
		return nil
	}
	return &storepb.Process{
		BootId: p.bootID.String(), PidNamespace: p.pidNamespace, Pid: p.pid, Start: p.start, SeenFrom: p.namespaces(),
	}
}

// seenFromOf packs namespaces into a string that many processes share.
func seenFromOf(namespaces []uint64) sharedString {
	var packed []byte
	for _, namespace := range namespaces {
		packed = binary.BigEndian.AppendUint64(packed, namespace)
	}
	return share(string(packed))
}

func (p *process) namespaces() (namespaces []uint64) {
	for packed := []byte(p.seenFrom.String()); len(packed) >= 8; packed = packed[8:] {
		namespaces = append(namespaces, binary.BigEndian.Uint64(packed))
	}
	return namespaces
}

// factsOf answers nil for a content of no format. What such a content has to judge is its evidence.
func factsOf(m *storepb.Facts) *facts {
	if m == nil || m.GetFormat() == "" || lockfact.Format(m.GetFormat()) == lockfact.None {
		return nil
	}
	return &facts{
		Facts: lockfact.Facts{
			Format: lockfact.Format(word(m.GetFormat())), Holder: m.GetHolder(), Host: share(m.GetHost()).String(), PID: int(m.GetPid()),
			IssuedAt: m.GetIssuedAt(), ExpiresAt: m.GetExpiresAt(),
			Guard: lockfact.Guard(word(m.GetGuard())), OnStale: lockfact.OnStale(word(m.GetOnStale())), Invalid: m.GetInvalid(),
		},
		tag: m.GetTag(), process: processFrom(m.GetProcess()), machine: share(m.GetMachine()),
	}
}

// factsNow is factsOf for what somebody writes now, on the machine that has the name of the host.
func (ns *Namespace) factsNow(m *storepb.Facts) *facts {
	says := factsOf(m)
	if says != nil {
		says.machine = ns.machineOf(says.Host)
	}
	return says
}

func (f *facts) message() *storepb.Facts {
	if f == nil {
		return nil
	}
	m := FactsMessage(f.Facts)
	m.Tag, m.Process, m.Machine = f.tag, f.process.message(), f.machine.String()
	return m
}

// FactsMessage renders facts for a command.
func FactsMessage(f lockfact.Facts) *storepb.Facts {
	return &storepb.Facts{
		Format: string(f.Format), Holder: f.Holder, Host: f.Host, Pid: uint32(f.PID),
		IssuedAt: f.IssuedAt, ExpiresAt: f.ExpiresAt, Guard: string(f.Guard), OnStale: string(f.OnStale), Invalid: f.Invalid,
	}
}

// sameHolder tells whether two contents speak of one acquisition. A number that two processes had one
// after the other is two holders.
func (f *facts) sameHolder(g *facts) bool {
	if !f.SameHolder(g.Facts) {
		return false
	}
	return f.process == nil || g.process == nil || f.process.processID == g.process.processID
}

// forAnyone is what is known of a stale lock that somebody is taking over by writing: who that is, nobody knows yet.
func (f *facts) forAnyone() *facts {
	known := *f
	known.machine = sharedString{}
	if f.process != nil {
		known.process = &process{processID: f.process.processID}
	}
	return &known
}

// goneStill is what is known of the process of new content: it is gone if it was that of the old content,
// and that is gone.
func (in *inode) goneStill(says *facts) *staleness {
	if in.gone == nil || says == nil || says.process == nil ||
		says.Host != in.facts.Host || says.process.processID != in.facts.process.processID {
		return nil
	}
	return in.gone
}

// maxFacts bounds what is kept of facts beside their tag, in bytes, so that a snapshot can always be read
// again. A tag is part of the content.
const maxFacts = 4 << 10

func tooManyFacts(m *storepb.Facts) bool {
	return len(m.GetTag()) > MaxContent || proto.Size(m)-len(m.GetTag()) > maxFacts
}

// held is an inode whose lock lives as long as a process.
type held struct {
	says *facts
	ino  uint64
}

func (h held) host() string { return h.says.Host }

// firstOf is where the index of what processes hold begins with those of a host, or one process of it.
func firstOf(host string, by *process) held {
	return held{says: &facts{Facts: lockfact.Facts{Host: host}, process: by}}
}

func lessHeld(a, b held) bool {
	var p, q processID
	if a.says.process != nil {
		p = a.says.process.processID
	}
	if b.says.process != nil {
		q = b.says.process.processID
	}
	return cmp.Or(cmp.Compare(a.host(), b.host()), compareProcesses(p, q), cmp.Compare(a.ino, b.ino)) < 0
}

// heldBy is the inode's place in the index of what processes hold; ok is false if it has none, as when the
// process is known to be gone or nobody can take the file for a lock any more.
func (in *inode) heldBy() (h held, ok bool) {
	if in.nlink == 0 || in.facts == nil || in.facts.process == nil || in.gone != nil || in.kernelLocked {
		return held{}, false
	}
	return held{in.facts, in.ino}, true
}

// heldOn lists what processes of a host hold, or one process of it.
func (ns *Namespace) heldOn(host string, by *process) []held {
	var found []held
	ns.byProcess.Ascend(firstOf(host, by), func(h held) bool {
		if h.host() != host || by != nil && h.says.process.processID != by.processID {
			return false
		}
		found = append(found, h)
		return true
	})
	return found
}

// holdsAny tells whether processes of a host hold anything.
func (ns *Namespace) holdsAny(host string) bool {
	found := false
	ns.byProcess.Ascend(firstOf(host, nil), func(h held) bool {
		found = h.host() == host
		return false
	})
	return found || len(ns.madeOn(host, nil)) > 0
}

// processesOn answers each process of a host once that holds something or, as a maker, may come to hold it.
func (ns *Namespace) processesOn(host string) []*process {
	var found []*process
	known := make(map[processID]bool)
	add := func(p *process) {
		if !known[p.processID] {
			known[p.processID] = true
			found = append(found, p)
		}
	}
	for _, h := range ns.heldOn(host, nil) {
		add(h.says.process)
	}
	for _, m := range ns.madeOn(host, nil) {
		add(&process{processID: m.by})
	}
	return found
}
