package raftstore

import (
	"cmp"

	"google.golang.org/protobuf/proto"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/storepb"
)

// facts is what a file's content says about its lock, without any rule. It is never modified. A content
// of no format has none.
type facts struct {
	lockfact.Facts
	tag     string
	process *process // the holder; nil unless the lock lives as long as it does and it was identified
}

// process is a process of some host, and never another one. It is never modified.
type process struct {
	bootID       sharedString
	pidNamespace uint64
	pid          uint32
	start        uint64
}

func processFrom(m *storepb.Process) *process {
	if m == nil {
		return nil
	}
	return &process{share(m.GetBootId()), m.GetPidNamespace(), m.GetPid(), m.GetStart()}
}

func (p *process) message() *storepb.Process {
	if p == nil {
		return nil
	}
	return &storepb.Process{BootId: p.bootID.String(), PidNamespace: p.pidNamespace, Pid: p.pid, Start: p.start}
}

// factsOf answers nil for a content of no format.
func factsOf(m *storepb.Facts) *facts {
	if m == nil || m.GetFormat() == "" || lockfact.Format(m.GetFormat()) == lockfact.None {
		return nil
	}
	return &facts{
		Facts: lockfact.Facts{
			Format: lockfact.Format(word(m.GetFormat())), Holder: m.GetHolder(), Host: share(m.GetHost()).String(), PID: int(m.GetPid()),
			IssuedAt: m.GetIssuedAt(), ExpiresAt: m.GetExpiresAt(),
			Guard: lockfact.Guard(word(m.GetGuard())), OnStale: lockfact.OnStale(word(m.GetOnStale())),
		},
		tag: m.GetTag(), process: processFrom(m.GetProcess()),
	}
}

func (f *facts) message() *storepb.Facts {
	if f == nil {
		return nil
	}
	m := FactsMessage(f.Facts)
	m.Tag, m.Process = f.tag, f.process.message()
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
	return f.process == nil || g.process == nil || *f.process == *g.process
}

// goneStill is what is known of the process of new content: it is gone if it was that of the old content,
// and that is gone.
func (in *inode) goneStill(says *facts) *staleness {
	if in.gone == nil || says == nil || says.process == nil ||
		says.Host != in.facts.Host || *says.process != *in.facts.process {
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
	var p, q process
	if a.says.process != nil {
		p = *a.says.process
	}
	if b.says.process != nil {
		q = *b.says.process
	}
	return cmp.Or(
		cmp.Compare(a.host(), b.host()), cmp.Compare(p.bootID.String(), q.bootID.String()), cmp.Compare(p.pidNamespace, q.pidNamespace),
		cmp.Compare(p.pid, q.pid), cmp.Compare(p.start, q.start), cmp.Compare(a.ino, b.ino),
	) < 0
}

// heldBy is the inode's place in the index of what processes hold; ok is false if it has none, as when the
// process is known to be gone or nobody can take the file for a lock any more.
func (in *inode) heldBy() (h held, ok bool) {
	if in.nlink == 0 || in.facts == nil || in.facts.process == nil || in.gone != nil {
		return held{}, false
	}
	return held{in.facts, in.ino}, true
}

// heldOn lists what processes of a host hold, or one process of it.
func (ns *Namespace) heldOn(host string, by *process) []held {
	var found []held
	ns.byProcess.Ascend(firstOf(host, by), func(h held) bool {
		if h.host() != host || by != nil && *h.says.process != *by {
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
		first, found = h, h.host() == from.host()
		return false
	})
	return first, found
}

// holdsAny tells whether processes of a host hold anything.
func (ns *Namespace) holdsAny(host string) bool {
	_, found := ns.firstHeld(firstOf(host, nil))
	return found
}
