package process

import (
	"iter"
	"slices"
)

// maxAncestors is how many processes a lineage has at most.
const maxAncestors = 64

// Ancestors answers the process that a thread belongs to and its ancestors, nearest first, up to the last one
// that can be seen.
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

// readParent asks for the parent again if the one that is known has ended meanwhile: a process whose
// parent ends gets another one.
func (s stat) readParent() (stat, bool) {
	for s.ppid != 0 {
		// A process that is younger than its child only has the pid of the parent. One that lives still is the parent, whenever that was
		// read.
		if _, parent, err := table.find(s.ppid); err == nil && parent.Start <= s.Start {
			return parent, true
		}
		table.forget(s.PID)
		now, err := readStat(s.PID, s.PID)
		if err != nil || now.Start != s.Start {
			break
		}
		if now.ppid == s.ppid { // which there are no descriptors left to look at
			parent, err := readStat(s.ppid, s.ppid)
			return parent, err == nil && parent.Start <= s.Start
		}
		s = now
	}
	return stat{}, false
}

// Group answers the process that a thread belongs to and its nearest ancestors, nearest first, for as long
// as they are in its process group: what a shell runs for one command line, and the script among them.
// It has nobody if the thread cannot be seen. Each is looked for only when it is asked for.
func Group(thread int) iter.Seq[ID] {
	return func(yield func(ID) bool) {
		if s, err := statOf(thread); err == nil {
			sameGroup(s.ancestors())(yield)
		}
	}
}

// sameGroup asks for no more ancestors than it needs: each is a file to read.
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
