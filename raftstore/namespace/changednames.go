package namespace

import (
	"encoding/binary"
	"hash/fnv"

	"lockfs/raftstore/ids"
)

// NameKey is a hash of a name in a directory. Two names may share a key.
type NameKey uint64

// KeyOfName returns the key of a name.
func KeyOfName(parent ids.Inode, name []byte) NameKey {
	h := fnv.New64a()
	_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, uint64(parent)))
	_, _ = h.Write(name)
	return NameKey(h.Sum64())
}

// NameFilter is a compact set of names, with false positives. The empty filter contains no names.
type NameFilter []byte

const (
	smallestNameFilter = 8        // bytes
	largestNameFilter  = 16 << 10 // bytes
)

// NewNameFilter returns a filter for a number of names. Below 16,384 names, one of nine other names is a
// false positive.
func NewNameFilter(names int) NameFilter {
	size := smallestNameFilter
	for size < names && size < largestNameFilter {
		size *= 2
	}
	return make(NameFilter, size)
}

// IsValid reports whether the filter is empty or has a size of NewNameFilter.
func (f NameFilter) IsValid() bool {
	size := len(f)
	return size == 0 || size >= smallestNameFilter && size <= largestNameFilter && size&(size-1) == 0
}

// Add adds a name to a filter, which must not be empty.
func (f NameFilter) Add(key NameKey) {
	at, bit := f.place(key)
	f[at] |= bit
}

// Has reports whether a filter may contain a name.
func (f NameFilter) Has(key NameKey) bool {
	if len(f) == 0 {
		return false
	}
	at, bit := f.place(key)
	return f[at]&bit != 0
}

func (f NameFilter) place(key NameKey) (at uint64, bit byte) {
	mixed := uint64(key) ^ uint64(key)>>29
	return mixed / 8 & uint64(len(f)-1), 1 << (mixed % 8)
}

// ChangedNames returns the names for which the last command changed the lock or its staleness. It includes
// the effects of the time that passed with the command. It is not part of the state; callers do not change
// it.
func (ns *Namespace) ChangedNames() []NameKey { return ns.tree.changedNames }

// noteChanged compares a name before and after a change. nil: no name.
func (t *tree) noteChanged(before, after *entry) {
	at := after
	switch {
	case before == nil:
	case after == nil:
		at = before
	case before.token == after.token && (before.stale == nil) == (after.stale == nil):
		return
	}
	t.changedNames = append(t.changedNames, KeyOfName(at.parent, []byte(at.name)))
}
