package session

import (
	"time"

	"google.golang.org/protobuf/proto"

	"lockfs/cluster/process"
	"lockfs/formats"
	"lockfs/formats/semaphore"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// describe returns the lock facts of a content or of a symbolic link's target; nil: there are none. It
// interprets them as the writer does: with this host's clock and the pids of the writer's namespace. name is
// the file's name, empty if unknown.
func (h *holders) describe(caller *storepb.Caller, name, content []byte) *storepb.Facts {
	if len(content) == 0 {
		return nil
	}
	format, origin := formats.Detect(content), h.origin()
	if format == formats.None || format == formats.PID {
		return h.describePlain(caller, string(name), content)
	}
	if format == formats.Beads {
		origin.Hostname = h.hostnameOf(caller)
	}
	facts := formats.FactsOf(content, origin)
	message := namespace.FactsMessage(facts)
	if lock, err := semaphore.Parse(content); err == nil && format == formats.Semaphore {
		message.Tag = lock.Tag
	}
	if facts.ByProcess() {
		holder, _ := process.Find(int(caller.GetPid()), facts.PID)
		if holder != (process.ID{}) {
			message.Process = h.describeOrigin(holder)
		}
	}
	return message
}

// describePlain is describe for contents with only a pid, or without a format. These can have evidence.
func (h *holders) describePlain(caller *storepb.Caller, name string, content []byte) *storepb.Facts {
	var holder process.ID
	writer := formats.Writer{
		Hosts: []string{h.host, h.hostnameOf(caller)}, Now: time.Now(),
		IsKin: func(pid int) bool { // pids are the writer's or a relative's at the time of the write
			id, err := process.FindRelative(int(caller.GetPid()), pid)
			if err == nil {
				holder = id
			}
			return err == nil
		},
	}
	if says, found := formats.StatementIn(name, content, writer); found {
		message := namespace.FactsMessage(says.FactsOf(h.origin()))
		message.Process = h.describeOrigin(holder)
		return message
	}
	evidence := formats.EvidenceIn(content, writer)
	if len(evidence) == 0 {
		return nil
	}
	return &storepb.Facts{Format: storepb.Format_NONE, Evidence: evidence}
}

// describeName adds the meaning of the words in a new name to an operation.
func describeName(op *storepb.Op) {
	says := func(name []byte) storepb.NameSays { return storepb.NameSays(formats.WordsOf(string(name))) }
	switch op := op.GetOp().(type) {
	case *storepb.Op_Create:
		op.Create.Says = says(op.Create.GetName())
	case *storepb.Op_Link:
		op.Link.Says = says(op.Link.GetName())
	case *storepb.Op_Rename:
		op.Rename.Says = says(op.Rename.GetNewName())
	}
}

func (h *holders) origin() formats.Origin {
	return formats.Origin{Host: h.host, Hostname: h.hostname, ClockOffset: h.cluster.Offset()}
}

// refreshFacts updates the facts of a change described earlier. The clock offset may have been measured
// since, as after a session which ended while the host slept. As in Offset, the value which makes the lock
// stale later counts.
func (h *holders) refreshFacts(op *storepb.Op) *storepb.Op {
	facts := op.GetSetContent().GetFacts()
	if facts.GetFormat() == storepb.Format_NONE {
		return op
	}
	says := formats.FactsOf(op.GetSetContent().GetContent(), h.origin())
	if says.IssuedAt <= facts.GetIssuedAt() && says.ExpiresAt <= facts.GetExpiresAt() {
		return op
	}
	op = proto.CloneOf(op) // an abandoned attempt may still read it
	facts = op.GetSetContent().GetFacts()
	facts.IssuedAt, facts.ExpiresAt = max(says.IssuedAt, facts.GetIssuedAt()), max(says.ExpiresAt, facts.GetExpiresAt())
	return op
}

func (h *holders) hostnameOf(caller *storepb.Caller) string {
	if name, err := process.Hostname(int(caller.GetPid())); err == nil {
		return name
	}
	return h.hostname
}
