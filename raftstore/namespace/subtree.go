package namespace

import "lockfs/raftstore/ids"

// subtree aggregates all names below a directory, so a rename of the directory need not visit them. Each
// change of a name updates the at most MaxDepth subtrees above. It is derived, not part of the state.
type subtree struct {
	dir      ids.Inode
	up       *subtree         // of the directory above; nil: of the root
	used     usage            // names, and the bytes of these and of their inodes
	guarded  int              // names with a guard
	guarding map[*subtree]int // directories with guarded names, and their names here; loops must not depend on the order
	heights  []int            // number of directories in this one, by height
}

func (s *subtree) height() int { return len(s.heights) }

func (s *subtree) add(names, bytes int64, guarded int) {
	for ; s != nil; s = s.up {
		s.used.add(names, bytes)
		before := s.guarded
		s.guarded += guarded
		switch {
		case s.up == nil || (before == 0) == (s.guarded == 0):
		case s.guarded > 0:
			s.up.countGuarding(s, +1)
		default:
			s.up.countGuarding(s, -1)
		}
	}
}

// countGuarding counts the names of a directory with guarded names in it. An exchange of two directories
// gives one of them a second name for a moment.
func (s *subtree) countGuarding(in *subtree, by int) {
	if s.guarding[in] += by; s.guarding[in] == 0 {
		delete(s.guarding, in)
	}
}

// noHeight stands for a missing directory.
const noHeight = -1

// replaceHeight changes the number of levels below a directory in this one.
func (s *subtree) replaceHeight(from, to int) {
	for s != nil {
		before := s.height()
		s.addHeight(from, -1)
		s.addHeight(to, +1)
		if before == s.height() {
			return
		}
		from, to, s = before, s.height(), s.up
	}
}

func (s *subtree) addHeight(height, by int) {
	if height == noHeight {
		return
	}
	for len(s.heights) <= height {
		s.heights = append(s.heights, 0)
	}
	s.heights[height] += by
	for n := len(s.heights); n > 0 && s.heights[n-1] == 0; n-- {
		s.heights = s.heights[:n-1]
	}
}
