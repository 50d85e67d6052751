package process

import (
	"iter"
	"slices"
)

// maxLineage is how many processes a lineage has at most.
const maxLineage = 64

// Relative is a process with its process group, which is 0 if it cannot be seen from here.
type Relative struct {
	ID
	Group int
}

// Lineage answers the process that a thread belongs to and its ancestors, nearest first, up to the last one
// that can be seen.
func Lineage(thread int) ([]Relative, error) {
	s, err := statOf(thread)
	if err != nil {
		return nil, err
	}
	return slices.Collect(s.lineage()), nil
}

func (s stat) lineage() iter.Seq[Relative] {
	return func(yield func(Relative) bool) {
		for range maxLineage {
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
	for s.parent != 0 {
		// A process that is younger than its child only has the pid of the parent.
		if parent, err := readStat(s.parent, s.parent); err == nil && parent.Start <= s.Start {
			return parent, true
		}
		now, err := readStat(s.PID, s.PID)
		if err != nil || now.Start != s.Start || now.parent == s.parent {
			break
		}
		s = now
	}
	return stat{}, false
}

// SameGroup answers the process of a lineage and its nearest ancestors, for as long as they are in its
// process group: what a shell runs for one command line, and the script among them.
func SameGroup(lineage []Relative) []ID {
	var ids []ID
	for i, relative := range lineage {
		if i > 0 && (relative.Group != lineage[0].Group || relative.Group == 0) {
			break
		}
		ids = append(ids, relative.ID)
	}
	return ids
}
