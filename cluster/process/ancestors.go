package process

import (
	"iter"
	"slices"
)

// maxAncestors limits the result of Ancestors.
const maxAncestors = 64

// Ancestors returns a thread's process and its visible ancestors, nearest first.
func Ancestors(thread int) ([]Relative, error) {
	s, err := statOf(thread)
	if err != nil {
		return nil, err
	}
	return slices.Collect(s.ancestors()), nil
}

func (s stat) ancestors() iter.Seq[Relative] {
	return func(yield func(Relative) bool) {
		for range maxAncestors {
			if !yield(s.Relative) {
				return
			}
			parent, ok := s.readParent()
			if !ok {
				return
			}
			s = parent
		}
	}
}

// readParent reads the parent again if the known one has ended: then the process has another parent.
func (s stat) readParent() (stat, bool) {
	for s.ppid != 0 {
		// A younger process only has the parent's pid. A live process is still the parent.
		if _, parent, err := table.find(s.ppid); err == nil && parent.Start <= s.Start {
			return parent, true
		}
		table.forget(s.PID)
		now, err := readStat(s.PID, s.PID)
		if err != nil || now.Start != s.Start {
			break
		}
		if now.ppid == s.ppid { // there are no descriptors left to look at it
			parent, err := readStat(s.ppid, s.ppid)
			return parent, err == nil && parent.Start <= s.Start
		}
		s = now
	}
	return stat{}, false
}

// Group returns a thread's process and its nearest ancestors in the same process group, nearest first:
// the processes of one command line of a shell, and a script among them. It is empty if the thread cannot
// be seen. Each process is read only on demand.
func Group(thread int) iter.Seq[ID] {
	return func(yield func(ID) bool) {
		if s, err := statOf(thread); err == nil {
			sameGroup(s.ancestors())(yield)
		}
	}
}

// sameGroup reads no more ancestors than it needs.
func sameGroup(lineage iter.Seq[Relative]) iter.Seq[ID] {
	return func(yield func(ID) bool) {
		group, first := 0, true
		for relative := range lineage {
			if !first && (relative.Group != group || group == 0) || !yield(relative.ID) {
				return
			}
			group, first = relative.Group, false
		}
	}
}
