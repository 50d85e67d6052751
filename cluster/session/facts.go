package session

import (
	"time"

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
	origin := formats.Origin{Host: h.host, Hostname: h.hostname, ClockOffset: h.cluster.Offset()}
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
