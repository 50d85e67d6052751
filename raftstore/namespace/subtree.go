package namespace

import "lockfs/raftstore/ids"

// subtree is what is known of all names below a directory, so that a rename of the directory need not visit them. Each change of a name changes
// the subtrees of the directories above it, of which there are MaxDepth at most. None of it is part of the state: it follows from that.
type subtree struct {
	dir      ids.Inode
	up       *subtree          // of the directory above; nil: of the root
	used     usage             // names, and the bytes of these and of their inodes
	guarded  int               // names that a guard may refuse to move
	guarding map[*subtree]bool // directories in this one with guarded names below; never ranged over where the order counts
	heights  []int             // how many directories in this one have how many levels of directories below
}

// height is the number of directory levels below.
func (s *subtree) height() int { return len(s.heights) }

func (s *subtree) add(names, bytes int64, guarded int) {
	for ; s != nil; s = s.up {
		s.used.add(names, bytes)
		before := s.guarded
		if s.guarded += guarded; s.up != nil && (before == 0) != (s.guarded == 0) {
			s.up.noteGuarded(s, s.guarded > 0)
		}
	}
}

// noteGuarded notes whether a directory in this one has guarded names.
func (s *subtree) noteGuarded(in *subtree, has bool) {
	if has {
		s.guarding[in] = true
	} else {
		delete(s.guarding, in)
	}
}

// noHeight stands for a directory that is not there.
const noHeight = -1

// replaceHeight is for a directory in this one that has another number of levels below than before.
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
