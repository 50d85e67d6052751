package namespace

import (
	"slices"

	"lockfs/raftstore/ids"
)

// placeDir records the parent of a directory. A removed directory loses its quota.
func (t *tree) placeDir(in *inode) {
	if in.nlink == 0 {
		t.quotas.byDir.Delete(in.ino)
	}
	if t.below == nil {
		return
	}
	s := t.below[in.ino]
	if s == nil {
		s = &subtree{dir: in.ino, guarding: make(map[*subtree]int)}
		t.below[in.ino] = s
	}
	if in.ino != RootIno {
		s.up = t.below[in.parent]
	}
}

// countBelow adds a name, with everything below it, to the directories above. sign -1 subtracts it.
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
		if s.guarded > 0 {
			parent.countGuarding(s, int(sign))
		}
		if sign > 0 {
			parent.replaceHeight(noHeight, s.height())
		} else {
			parent.replaceHeight(s.height(), noHeight)
		}
	}
	parent.add(sign*names, sign*bytes, int(sign)*guarded)
}

func (t *tree) recountBelow(ino ids.Inode, more int64) {
	if more == 0 || t.below == nil {
		return
	}
	for _, e := range t.namesOf(ino) {
		t.below[e.parent].add(0, more, 0)
	}
}

// countAllBelow computes all subtrees of a restored state.
func (t *tree) countAllBelow() {
	t.below = make(map[ids.Inode]*subtree)
	for _, place := range [...]bool{false, true} { // a parent may have a larger number than its directories
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

// guardedBelow returns the guarded names below a directory, in an order of the state alone.
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
