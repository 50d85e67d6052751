package session

import (
	"time"

	"lockfs/cluster/process"
	"lockfs/raftstore/hostinfo"
	"lockfs/raftstore/storepb"
)

// lineage returns the caller's process with its ancestors, and the number of them in its family. The caller
// may create names on behalf of its family. The list is never empty: an invisible caller has an empty
// process.
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

// describeOrigin returns the message of a process with the namespaces from which it is visible.
func (h *holders) describeOrigin(id process.ID) *storepb.Process {
	message := h.message(id)
	message.SeenFrom, _ = process.Namespaces(id.PID)
	return message
}

// attachNamespace adds the caller's pid namespace to operations which a guard may refuse.
func (h *holders) attachNamespace(caller *storepb.Caller, op *storepb.Op) {
	switch op.GetOp().(type) {
	case *storepb.Op_Unlink, *storepb.Op_Rename, *storepb.Op_SetContent:
		caller.PidNamespace, _ = process.NamespaceOf(int(caller.GetPid()))
	}
}

// attachLineage adds the creator of a name and the family on whose behalf it acts.
func (h *holders) attachLineage(caller *storepb.Caller) {
	line, family := h.lineage(caller)
	// The family ends with the nearest old process, such as a script: it was not started to create a lock for
	// another.
	for i, relative := range line[:family] {
		if id, ok := h.ours(relative); ok && hostinfo.BootTime()-startOf(id) > creatorAge {
			family = i + 1
			break
		}
	}
	caller.Lineage, caller.Family = line, uint32(family)
}

// isRelative reports whether a caller is one of the processes, or their ancestor or descendant. Ended or
// invisible processes have no relatives.
func (h *holders) isRelative(caller *storepb.Caller, of []*storepb.Process) bool {
	for _, p := range of {
		if id, ok := h.ours(p); ok && process.IsRelative(int(caller.GetPid()), id) {
			return true
		}
	}
	return false
}

func startOf(id process.ID) time.Duration {
	const tick = time.Second / 100 // USER_HZ is the same on all platforms of Go
	return time.Duration(id.Start) * tick
}

func (h *holders) watchCreator(caller *storepb.Caller) {
	for _, p := range caller.GetLineage()[:min(int(caller.GetFamily()), len(caller.GetLineage()))] {
		h.watch(p)
	}
}
