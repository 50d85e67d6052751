package namespace

import (
	"slices"

	"lockfs/raftstore/ids"
)

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

// placeDir notes in which directory another one is, or that it is removed, and then has no quota any more.
func (t *tree) placeDir(in *inode) {
	if in.nlink == 0 {
		t.quotas.byDir.Delete(in.ino)
	}
	if t.below == nil {
		return
	}
	s := t.below[in.ino]
	if s == nil {
		s = &subtree{dir: in.ino, guarding: make(map[*subtree]bool)}
		t.below[in.ino] = s
	}
	if in.ino != RootIno {
		s.up = t.below[in.parent]
	}
}

// countBelow adds a name, with all that is below it, to the directories above it, or takes it away with sign -1.
func (t *tree) countBelow(e *entry, in *inode, sign int64) {
	if t.below == nil {
		return
	}
	parent, names, bytes, guarded := t.below[e.parent], int64(1), in.bytesByName()+e.bytes(), 0
	if e.isGuarded() {
		guarded = 1
	}
	if in.isDir() {
		s := t.below[in.ino]
		names, bytes, guarded = names+int64(s.used.inodes), bytes+int64(s.used.bytes), guarded+s.guarded
		parent.noteGuarded(s, sign > 0 && s.guarded > 0)
		if sign > 0 {
			parent.replaceHeight(noHeight, s.height())
		} else {
			parent.replaceHeight(s.height(), noHeight)
		}
	}
	parent.add(sign*names, sign*bytes, int(sign)*guarded)
}

// recountBelow is for an inode that counts so many bytes more by each of its names.
func (t *tree) recountBelow(ino ids.Inode, more int64) {
	if more == 0 || t.below == nil {
		return
	}
	for _, e := range t.namesOf(ino) {
		t.below[e.parent].add(0, more, 0)
	}
}

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

// countAllBelow works out all subtrees of a restored state.
func (t *tree) countAllBelow() {
	t.below = make(map[ids.Inode]*subtree)
	for _, place := range [...]bool{false, true} { // a directory may have a larger number than those below it
		t.inodes.Scan(func(_ ids.Inode, in *inode) bool {
			if in.isDir() && (place || in.nlink > 0) {
				t.placeDir(in)
			}
			return true
		})
	}
	t.countDirsIn(RootIno)
	t.byName.Scan(func(e *entry) bool {
		guarded := 0
		if e.isGuarded() {
			guarded = 1
		}
		if in, found := t.inode(e.ino); found {
			t.below[e.parent].add(1, in.bytesByName()+e.bytes(), guarded)
		}
		return true
	})
}

func (t *tree) countDirsIn(dir ids.Inode) {
	for _, e := range t.entriesOf(dir) {
		if in, found := t.inode(e.ino); found && in.isDir() {
			t.below[dir].replaceHeight(noHeight, 0)
			t.countDirsIn(in.ino)
		}
	}
}

// guardedBelow lists the guarded names below a directory, in an order that the state alone determines.
func (t *tree) guardedBelow(dir ids.Inode) []*entry {
	dirs := []*subtree{t.below[dir]}
	var names []*entry
	for len(dirs) > 0 {
		s := dirs[0]
		dirs = dirs[1:]
		t.guarded.Ascend(&entry{parent: s.dir}, func(e *entry) bool {
			if e.parent != s.dir {
				return false
			}
			names = append(names, e)
			return true
		})
		for in := range s.guarding {
			dirs = append(dirs, in)
		}
	}
	slices.SortFunc(names, compareByName)
	return names
}
