package history

import (
	"hash/fnv"
	"slices"
	"strings"
)

// state is a directory and its present and former files. It is never modified.
type state struct {
	entries []entry // by name
	inodes  []inode // by number; those without a name only while a call of the history may use them
	looks   []look  // by process, descriptor and name
	void    uint64  // bit n: the call of unknown outcome n was undone or ended, and has no further effect
	hash    uint64
}

// entry is a name.
type entry struct {
	name string
	ino  int64
	// maker is 1 + the number of the creation of unknown outcome that made it; 0: none, or the file was
	// replaced. Only the undo of its maker may remove it.
	maker int
	moved *Call // the rename that gave it this name
}

// inode is a file or a directory. A number below 0 is a placeholder for an unknown one.
type inode struct {
	ino       int64
	dir       bool
	nlink     int
	content   string
	removedBy string // host
	changer   int    // the creation of unknown outcome that changed it last, as in entry.maker; 0: another call
}

func (s *state) sum() uint64 {
	h := fnv.New64a()
	word := func(v uint64) {
		for range 8 {
			_, _ = h.Write([]byte{byte(v)})
			v >>= 8
		}
	}
	for _, e := range s.entries {
		_, _ = h.Write([]byte(e.name))
		word(uint64(e.ino))
		word(uint64(e.maker))
	}
	for _, in := range s.inodes {
		word(uint64(in.ino))
		word(uint64(in.nlink))
		_, _ = h.Write([]byte(in.content))
		_, _ = h.Write([]byte(in.removedBy))
		word(uint64(in.changer))
	}
	for _, l := range s.looks {
		word(uint64(l.process))
		word(uint64(l.opened))
		_, _ = h.Write([]byte(l.name))
		_, _ = h.Write([]byte{bit(l.gone), bit(l.empty), bit(l.unsure), bit(l.made), bit(l.noted), bit(l.listed)})
	}
	word(s.void)
	return h.Sum64()
}

func bit(set bool) byte {
	if set {
		return 1
	}
	return 0
}

func (s *state) equal(other *state) bool {
	return s == other || s.hash == other.hash && s.void == other.void &&
		slices.Equal(s.entries, other.entries) && slices.Equal(s.inodes, other.inodes) && slices.Equal(s.looks, other.looks)
}

// change is a state under construction.
type change struct{ state }

func (s *state) change() *change {
	return &change{state{
		entries: slices.Clone(s.entries), inodes: slices.Clone(s.inodes), looks: slices.Clone(s.looks), void: s.void,
	}}
}

func (c *change) done() *state {
	c.hash = c.sum()
	return &c.state
}

// entry returns a name; changes through it change the state.
func (s *state) entry(name string) (*entry, bool) {
	i, found := slices.BinarySearchFunc(s.entries, name, func(e entry, name string) int { return strings.Compare(e.name, name) })
	if !found {
		return nil, false
	}
	return &s.entries[i], true
}

func (s *state) inode(ino int64) (*inode, bool) {
	i, found := slices.BinarySearchFunc(s.inodes, ino, compareIno)
	if !found {
		return nil, false
	}
	return &s.inodes[i], true
}

// named returns the inode of a name.
func (s *state) named(name string) (*inode, bool) {
	e, found := s.entry(name)
	if !found {
		return nil, false
	}
	return s.inode(e.ino)
}

func compareIno(in inode, ino int64) int {
	switch {
	case in.ino < ino:
		return -1
	case in.ino > ino:
		return 1
	}
	return 0
}

func (c *change) addEntry(e entry) {
	i, _ := slices.BinarySearchFunc(c.entries, e.name, func(e entry, name string) int { return strings.Compare(e.name, name) })
	c.entries = slices.Insert(c.entries, i, e)
}

// deleteEntry makes a name free. Its next file is another lock.
func (c *change) deleteEntry(name string) {
	c.loseSight(name)
	c.entries = slices.DeleteFunc(c.entries, func(e entry) bool { return e.name == name })
}

func (c *change) addInode(in inode) {
	i, _ := slices.BinarySearchFunc(c.inodes, in.ino, compareIno)
	c.inodes = slices.Insert(c.inodes, i, in)
}

func (c *change) deleteInode(ino int64) {
	c.inodes = slices.DeleteFunc(c.inodes, func(in inode) bool { return in.ino == ino })
}

// unlink decrements the link count. An inode without names is forgotten unless a later call uses it.
func (c *change) unlink(ino int64, by string, asked bool) {
	in, found := c.inode(ino)
	if !found {
		return
	}
	in.changer = 0
	if in.nlink--; in.nlink > 0 {
		return
	}
	in.removedBy = by
	if !asked || in.dir {
		c.deleteInode(ino)
	}
}

// reveal gives the inode of a name its number, if it had a placeholder. It returns nil if the name cannot
// have that inode.
func (s *state) reveal(name string, ino int64, dir bool) *state {
	in, found := s.named(name)
	switch {
	case !found || in.dir != dir:
		return nil
	case in.ino == ino:
		return s
	case in.ino > 0:
		return nil
	}
	if _, other := s.inode(ino); other {
		return nil
	}
	c := s.change()
	revealed := *in
	revealed.ino = ino
	c.deleteInode(in.ino)
	c.addInode(revealed)
	for i := range c.entries {
		if c.entries[i].ino == in.ino {
			c.entries[i].ino = ino
		}
	}
	return c.done()
}
