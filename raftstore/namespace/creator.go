package namespace

import (
	"fmt"
	"slices"
	"time"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/storepb"
)

// creator is the creator of a name, stored if a rule makes it the holder. It is never modified.
//
// Some programs create a lock for another one and end at once: touch, mkdir, mktemp, ln. Then the creator is
// the nearest living ancestor in their process group: the script.
type creator struct {
	process *process
	heirs   []*process // nearest first
	host    internedString
	machine internedString
	since   int64
	gone    *staleness // nil: not known to be gone
}

// atOnceLimit is how long a process may live after the creation of a name for its heir to become the creator.
const atOnceLimit = 2 * time.Second

// Limits of creators, which keep snapshots readable.
const (
	maxHeirs    = 32
	maxSeenFrom = 33 // pid namespaces, which are nested 32 deep at most (pid_namespaces(7))
)

// isCreator reports whether a mount may be able to watch the process.
func isCreator(p *storepb.Process) bool {
	return p.GetPid() != 0 && len(p.GetBootId()) <= MaxName && len(p.GetSeenFrom()) <= maxSeenFrom
}

func (m *creator) withoutProcess(gone processID, ended int64, why *staleness) *creator {
	left := *m
	left.heirs = slices.DeleteFunc(slices.Clone(m.heirs), func(heir *process) bool { return heir.processID == gone })
	if m.process.processID != gone {
		return &left
	}
	// An end no mount saw may have come at once.
	if len(left.heirs) > 0 && ended-m.since <= int64(atOnceLimit) {
		left.process, left.heirs = left.heirs[0], left.heirs[1:]
		return &left
	}
	left.gone = why
	return &left
}

func (m *creator) each(visit func(*process)) {
	if m == nil || m.gone != nil {
		return
	}
	visit(m.process)
	for _, heir := range m.heirs {
		visit(heir)
	}
}

func (m *creator) message() *storepb.MakerRecord {
	if m == nil {
		return nil
	}
	record := &storepb.MakerRecord{
		Process: m.process.message(), Host: m.host.String(), Machine: m.machine.String(), Since: m.since,
	}
	for _, heir := range m.heirs {
		record.Heirs = append(record.Heirs, heir.message())
	}
	if m.gone != nil {
		record.Gone, record.GoneSince = m.gone.reason, m.gone.since
	}
	return record
}

func creatorFrom(record *storepb.MakerRecord) *creator {
	if record.GetProcess() == nil {
		return nil
	}
	m := &creator{
		process: processFrom(record.GetProcess()), host: intern(record.GetHost()), machine: intern(record.GetMachine()),
		since: record.GetSince(),
	}
	for _, heir := range record.GetHeirs() {
		m.heirs = append(m.heirs, processFrom(heir))
	}
	if record.GetGone() != "" {
		m.gone = &staleness{reason: record.GetGone(), since: record.GetGoneSince(), ofCreator: true}
	}
	return m
}

// applyRule returns the effective facts of a lock its creator holds, whatever its content says.
func (m *creator) applyRule(f lockfact.Facts, rule lockfact.Rule) lockfact.Facts {
	pid := int(m.process.pid)
	byMaker := lockfact.Facts{
		Format: f.Format, Holder: fmt.Sprintf("process %d", pid), Host: m.host.String(), PID: pid,
		Guard: lockfact.GuardHost, OnStale: lockfact.Remove,
	}
	if rule.StaleAfter != 0 {
		byMaker.ExpiresAt = f.ExpiresAt
	}
	return rule.Override(byMaker)
}
