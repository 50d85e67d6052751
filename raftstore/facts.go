package raftstore

import (
	"google.golang.org/protobuf/proto"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/storepb"
)

// facts is what a file's content says about its lock, without any rule. It is never modified. A content
// of no format has none.
type facts struct {
	lockfact.Facts
	tag     string
	process *storepb.Process // the holder; nil unless the lock lives as long as it does and it was identified
}

// factsOf answers nil for a content of no format.
func factsOf(m *storepb.Facts) *facts {
	if m == nil || m.GetFormat() == "" || lockfact.Format(m.GetFormat()) == lockfact.None {
		return nil
	}
	return &facts{
		Facts: lockfact.Facts{
			Format: lockfact.Format(m.GetFormat()), Holder: m.GetHolder(), Host: m.GetHost(), PID: int(m.GetPid()),
			IssuedAt: m.GetIssuedAt(), ExpiresAt: m.GetExpiresAt(),
			Guard: lockfact.Guard(m.GetGuard()), OnStale: lockfact.OnStale(m.GetOnStale()),
		},
		tag: m.GetTag(), process: m.GetProcess(),
	}
}

func (f *facts) message() *storepb.Facts {
	if f == nil {
		return nil
	}
	m := FactsMessage(f.Facts)
	m.Tag, m.Process = f.tag, f.process
	return m
}

// FactsMessage renders facts for a command.
func FactsMessage(f lockfact.Facts) *storepb.Facts {
	return &storepb.Facts{
		Format: string(f.Format), Holder: f.Holder, Host: f.Host, Pid: uint32(f.PID),
		IssuedAt: f.IssuedAt, ExpiresAt: f.ExpiresAt, Guard: string(f.Guard), OnStale: string(f.OnStale),
	}
}

// sameHolder tells whether two contents speak of one acquisition. A number that two processes had one
// after the other is two holders.
func (f *facts) sameHolder(g *facts) bool {
	if !f.SameHolder(g.Facts) {
		return false
	}
	return f.process == nil || g.process == nil || sameProcess(f.process, g.process)
}

// goneStill is what is known of the process of new content: it is gone if it was that of the old content,
// and that is gone.
func (in *inode) goneStill(says *facts) *staleness {
	if in.gone == nil || says == nil || says.process == nil ||
		says.Host != in.facts.Host || !sameProcess(says.process, in.facts.process) {
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

func sameProcess(p, q *storepb.Process) bool {
	return p.GetBootId() == q.GetBootId() && p.GetPidNamespace() == q.GetPidNamespace() &&
		p.GetPid() == q.GetPid() && p.GetStart() == q.GetStart()
}

// held is an inode whose lock lives as long as a process.
type held struct {
	host    string
	process *storepb.Process
	ino     uint64
}

func lessHeld(a, b held) bool {
	p, q := a.process, b.process
	switch {
	case a.host != b.host:
		return a.host < b.host
	case p.GetBootId() != q.GetBootId():
		return p.GetBootId() < q.GetBootId()
	case p.GetPidNamespace() != q.GetPidNamespace():
		return p.GetPidNamespace() < q.GetPidNamespace()
	case p.GetPid() != q.GetPid():
		return p.GetPid() < q.GetPid()
	case p.GetStart() != q.GetStart():
		return p.GetStart() < q.GetStart()
	}
	return a.ino < b.ino
}

// heldBy is the inode's place in the index of what processes hold; ok is false if it has none, as when the
// process is known to be gone or nobody can take the file for a lock any more.
func (in *inode) heldBy() (h held, ok bool) {
	if in.nlink == 0 || in.facts == nil || in.facts.process == nil || in.gone != nil {
		return held{}, false
	}
	return held{host: in.facts.Host, process: in.facts.process, ino: in.ino}, true
}

// heldOn lists what processes of a host hold, or one process of it.
func (ns *Namespace) heldOn(host string, process *storepb.Process) []held {
	var found []held
	ns.byProcess.Ascend(held{host: host, process: process}, func(h held) bool {
		if h.host != host || process != nil && !sameProcess(h.process, process) {
			return false
		}
		found = append(found, h)
		return true
	})
	return found
}

// firstHeld is the first of what processes of a host hold, from one on.
func (ns *Namespace) firstHeld(from held) (first held, found bool) {
	ns.byProcess.Ascend(from, func(h held) bool {
		first, found = h, h.host == from.host
		return false
	})
	return first, found
}

// holdsAny tells whether processes of a host hold anything.
func (ns *Namespace) holdsAny(host string) bool {
	_, found := ns.firstHeld(held{host: host})
	return found
}
