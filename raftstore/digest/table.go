package digest

import (
	"cmp"

	"github.com/tidwall/btree"
)

// Map is a map with its values in a digest, which follows all changes.
type Map[K cmp.Ordered, V any] struct {
	*btree.Map[K, V]
	digest *Digest // nil: of a copy
	value  func(K, V) Value
}

// NewMap returns an empty map. value returns the unmodified value to hash for a key and its content.
func NewMap[K cmp.Ordered, V any](d *Digest, value func(K, V) Value) *Map[K, V] {
	return &Map[K, V]{Map: new(btree.Map[K, V]), digest: d, value: value}
}

// Itself is the function value for maps of values.
func Itself[K cmp.Ordered, V Value](_ K, v V) Value { return v }

// Copy returns a copy in constant time, for reading only.
func (m *Map[K, V]) Copy() *Map[K, V] { return &Map[K, V]{Map: m.Map.Copy(), value: m.value} }

// Set is btree.Map's.
func (m *Map[K, V]) Set(key K, v V) (old V, replaced bool) {
	if old, replaced = m.Map.Set(key, v); replaced {
		m.digest.Remove(m.value(key, old))
	}
	m.digest.Put(m.value(key, v))
	return old, replaced
}

// Delete is btree.Map's.
func (m *Map[K, V]) Delete(key K) (old V, deleted bool) {
	if old, deleted = m.Map.Delete(key); deleted {
		m.digest.Remove(m.value(key, old))
	}
	return old, deleted
}

// PopMin is btree.Map's.
func (m *Map[K, V]) PopMin() (key K, old V, deleted bool) {
	if key, old, deleted = m.Map.PopMin(); deleted {
		m.digest.Remove(m.value(key, old))
	}
	return key, old, deleted
}

func (m *Map[K, V]) eachValue(visit func(Value) bool) bool {
	going := true
	m.Scan(func(key K, v V) bool {
		going = visit(m.value(key, v))
		return going
	})
	return going
}

// Tree is a tree with its items in a digest.
type Tree[T Value] struct {
	*btree.BTreeG[T]
	digest *Digest // nil: of a copy
	same   func(a, b T) bool
}

// NewTree returns an empty tree. same may be nil; it reports cheaply whether two items certainly have equal
// records.
func NewTree[T Value](d *Digest, less func(a, b T) bool, same func(a, b T) bool) *Tree[T] {
	return &Tree[T]{BTreeG: btree.NewBTreeGOptions(less, btree.Options{NoLocks: true}), digest: d, same: same}
}

// Copy returns a copy in constant time, for reading only.
func (t *Tree[T]) Copy() *Tree[T] { return &Tree[T]{BTreeG: t.BTreeG.Copy()} }

// Set is btree.BTreeG's.
func (t *Tree[T]) Set(item T) (old T, replaced bool) {
	if old, replaced = t.BTreeG.Set(item); replaced {
		if t.same != nil && t.same(old, item) {
			return old, true // both have the same record
		}
		t.digest.Remove(old)
	}
	t.digest.Put(item)
	return old, replaced
}

// Delete is btree.BTreeG's.
func (t *Tree[T]) Delete(item T) (old T, deleted bool) {
	if old, deleted = t.BTreeG.Delete(item); deleted {
		t.digest.Remove(old)
	}
	return old, deleted
}

func (t *Tree[T]) eachValue(visit func(Value) bool) bool {
	going := true
	t.Scan(func(item T) bool {
		going = visit(item)
		return going
	})
	return going
}

// Table is a Map or a Tree.
type Table interface {
	// Len returns the number of values.
	Len() int
	eachValue(visit func(Value) bool) bool
}

// Each visits the hashed values of tables, one table after the other, until visit returns false.
func Each(visit func(Value) bool, tables ...Table) {
	for _, table := range tables {
		if !table.eachValue(visit) {
			return
		}
	}
}
