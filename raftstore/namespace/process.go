package namespace

import (
	"cmp"
	"encoding/binary"
	"slices"

	"lockfs/raftstore/storepb"
)

// processID identifies a process of a host. No two processes share one.
type processID struct {
	bootID       internedString
	pidNamespace uint64
	pid          uint32
	start        uint64
}

// process is the information about a process. It is never modified.
type process struct {
	processID
	seenFrom internedString // the pid namespaces in which it has a pid (seenFromOf); empty: unknown
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
	id := processID{intern(m.GetBootId()), m.GetPidNamespace(), m.GetPid(), m.GetStart()}
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

func seenFromOf(namespaces []uint64) internedString {
	var packed []byte
	for _, namespace := range namespaces {
		packed = binary.BigEndian.AppendUint64(packed, namespace)
	}
	return intern(string(packed))
}

func (p *process) namespaces() (namespaces []uint64) {
	for packed := []byte(p.seenFrom.String()); len(packed) >= 8; packed = packed[8:] {
		namespaces = append(namespaces, binary.BigEndian.Uint64(packed))
	}
	return namespaces
}

// isSeenFrom reports whether a pid namespace is the process's own or contains it: only there a program can
// judge the process. If these are unknown, every namespace counts.
func (p *process) isSeenFrom(namespace uint64) bool {
	return p == nil || p.seenFrom == (internedString{}) || slices.Contains(p.namespaces(), namespace)
}

func descends(by *storepb.Caller, from *process) bool {
	return slices.ContainsFunc(by.GetLineage(), func(p *storepb.Process) bool { return p != nil && processFrom(p).processID == from.processID })
}
