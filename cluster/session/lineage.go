package session

import (
	"time"

	"lockfs/cluster/process"
	"lockfs/raftstore/hostinfo"
	"lockfs/raftstore/storepb"
)

// lineage is a caller's process with its ancestors, and how many of them are its family: those in whose place it may make
// something. It is never empty: a caller that cannot be seen descends from nobody.
func (h *holders) lineage(caller *storepb.Caller) (line []*storepb.Process, family int) {
	relatives, _ := process.Ancestors(int(caller.GetPid()))
	for i, relative := range relatives {
		if family == i && relative.Group != 0 && relative.Group == relatives[0].Group || i == 0 {
			family = i + 1
			line = append(line, h.describeOrigin(relative.ID))
			continue
		}
		line = append(line, h.message(relative.ID))
	}
	if line == nil {
		return []*storepb.Process{{}}, 0
	}
	return line, family
}

// describeOrigin tells of a process from where it can be judged, too.
func (h *holders) describeOrigin(id process.ID) *storepb.Process {
	message := h.message(id)
	message.SeenFrom, _ = process.Namespaces(id.PID)
	return message
}

// attachNamespace says from where a caller judges, for what a guard may refuse him.
func (h *holders) attachNamespace(caller *storepb.Caller, op *storepb.Op) {
	switch op.GetOp().(type) {
	case *storepb.Op_Unlink, *storepb.Op_Rename, *storepb.Op_SetContent:
		caller.PidNamespace, _ = process.NamespaceOf(int(caller.GetPid()))
	}
}

// attachLineage tells who makes a name, and in whose place it may be made.
func (h *holders) attachLineage(caller *storepb.Caller) {
	line, family := h.lineage(caller)
	// Those that it acts for end with the nearest that was not started to make a lock for another one, such as a script.
	for i, relative := range line[:family] {
		if id, ok := h.ours(relative); ok && hostinfo.BootTime()-startOf(id) > creatorAge {
			family = i + 1
			break
		}
	}
	caller.Lineage, caller.Family = line, uint32(family)
}

// isRelative reports whether a caller is one of the processes, or an ancestor or a descendant of one. Processes that have ended, or cannot be
// seen from here, have no kin here.
func (h *holders) isRelative(caller *storepb.Caller, of []*storepb.Process) bool {
	for _, p := range of {
		if id, ok := h.ours(p); ok && process.IsRelative(int(caller.GetPid()), id) {
			return true
		}
	}
	return false
}

// startOf is when a process was started, on CLOCK_BOOTTIME.
func startOf(id process.ID) time.Duration {
	const tick = time.Second / 100 // USER_HZ, the same on all machines that Go runs on
	return time.Duration(id.Start) * tick
}

// watchCreator is called once a name has been made by a caller that was introduced.
func (h *holders) watchCreator(caller *storepb.Caller) {
	for _, p := range caller.GetLineage()[:min(int(caller.GetFamily()), len(caller.GetLineage()))] {
		h.watch(p)
	}
}
