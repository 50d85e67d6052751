package session

import (
	"time"

	"google.golang.org/protobuf/proto"

	"lockfs/cluster/process"
	"lockfs/formats"
	"lockfs/formats/pid"
	"lockfs/formats/semaphore"
	"lockfs/raftstore/fault"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// describe works out what a content says about its lock, as the caller who writes it means it: on this
// host's clock, and with the pids of the caller's namespace. Nil if nobody could judge it.
func (h *holders) describe(caller *storepb.Caller, content []byte) *storepb.Facts {
	if len(content) == 0 {
		return nil
	}
	format := formats.Detect(content)
	holder := process.ID{}
	if format == formats.PID {
		// A number is a pid only if it was one when it was written: of the writer, or of a relative.
		number, err := pid.Parse(content)
		if err == nil {
			holder, err = process.FindKin(int(caller.GetPid()), number.PID)
		}
		if err != nil && !fault.AnyNumber {
			return nil
		}
	}
	if format == formats.None {
		return h.evidence(caller, content)
	}
	origin := h.origin()
	if format == formats.Beads {
		origin.Hostname = h.hostnameOf(caller)
	}
	facts := formats.FactsOf(content, origin)
	message := namespace.FactsMessage(facts)
	if lock, err := semaphore.Parse(content); err == nil && format == formats.Semaphore {
		message.Tag = lock.Tag
	}
	if facts.ByProcess() && format != formats.PID {
		holder, _ = process.Find(int(caller.GetPid()), facts.PID)
	}
	if holder != (process.ID{}) {
		message.Process = h.introduce(holder)
	}
	return message
}

// origin is that of what is written on this host now.
func (h *holders) origin() formats.Origin {
	return formats.Origin{Host: h.host, Hostname: h.hostname, ClockOffset: h.cluster.Offset()}
}

// dated is a change whose content was described a while ago: how wrong this host's clock is may have been measured since, as after a session
// that ended while the host stood still. As with Offset, that counts by which the lock is stale later.
func (h *holders) dated(op *storepb.Op) *storepb.Op {
	facts := op.GetSetContent().GetFacts()
	if facts.GetFormat() == storepb.Format_NONE {
		return op
	}
	says := formats.FactsOf(op.GetSetContent().GetContent(), h.origin())
	if says.IssuedAt <= facts.GetIssuedAt() && says.ExpiresAt <= facts.GetExpiresAt() {
		return op
	}
	op = proto.CloneOf(op) // an attempt that nobody waits for may still read it
	facts = op.GetSetContent().GetFacts()
	facts.IssuedAt, facts.ExpiresAt = max(says.IssuedAt, facts.GetIssuedAt()), max(says.ExpiresAt, facts.GetExpiresAt())
	return op
}

// evidence is for a content of no format, and for the target of a symbolic link: it can be judged if it tells of its writer.
func (h *holders) evidence(caller *storepb.Caller, content []byte) *storepb.Facts {
	evidence := formats.EvidenceIn(content, formats.Writer{
		Hosts: []string{h.host, h.hostnameOf(caller)}, Now: time.Now(),
		IsKin: func(pid int) bool {
			_, err := process.FindKin(int(caller.GetPid()), pid)
			return err == nil
		},
	})
	if evidence == "" {
		return nil
	}
	return &storepb.Facts{Format: storepb.Format_NONE, Evidence: evidence}
}

// hostnameOf is what the caller takes for the name of this host.
func (h *holders) hostnameOf(caller *storepb.Caller) string {
	if name, err := process.Hostname(int(caller.GetPid())); err == nil {
		return name
	}
	return h.hostname
}
