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

// describe works out what a content, or the target of a symbolic link, says about its lock, as the caller who writes it means it: on
// this host's clock, and with the pids of the caller's namespace. name is that of the file, empty if it is not known. Nil if it says nothing.
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

// describePlain is describe for a content that says nothing but a pid, or is of no format: then it can have evidence.
func (h *holders) describePlain(caller *storepb.Caller, name string, content []byte) *storepb.Facts {
	var holder process.ID
	writer := formats.Writer{
		Hosts: []string{h.host, h.hostnameOf(caller)}, Now: time.Now(),
		IsKin: func(pid int) bool { // a number is a pid only if it was one when it was written: of the writer, or of a relative
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

// describeName tells what the words of the name say that an operation makes.
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

// origin is that of what is written on this host now.
func (h *holders) origin() formats.Origin {
	return formats.Origin{Host: h.host, Hostname: h.hostname, ClockOffset: h.cluster.Offset()}
}

// refreshFacts is a change whose content was described a while ago: how wrong this host's clock is may have been measured since, as after a session
// that ended while the host stood still. As with Offset, that counts by which the lock is stale later.
func (h *holders) refreshFacts(op *storepb.Op) *storepb.Op {
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

// hostnameOf is what the caller takes for the name of this host.
func (h *holders) hostnameOf(caller *storepb.Caller) string {
	if name, err := process.Hostname(int(caller.GetPid())); err == nil {
		return name
	}
	return h.hostname
}
