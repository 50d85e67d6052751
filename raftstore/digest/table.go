package digest

import (
	"cmp"

	"github.com/tidwall/btree"
)

// Map is a map whose values are in a digest, each in its place: whatever changes the one changes the other.
type Map[K cmp.Ordered, V any] struct {
	*btree.Map[K, V]
	digest *Digest // nil: of a copy
	value  func(K, V) Value
}

// NewMap makes an empty map; value answers what is hashed of a key and what it has, which is never modified.
func NewMap[K cmp.Ordered, V any](d *Digest, value func(K, V) Value) *Map[K, V] {
	return &Map[K, V]{Map: new(btree.Map[K, V]), digest: d, value: value}
}

// Itself is for maps of values.
func Itself[K cmp.Ordered, V Value](_ K, v V) Value { return v }

// Copy is a copy in constant time, for reading only.
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

// Tree is a tree whose items are in a digest.
type Tree[T Value] struct {
	*btree.BTreeG[T]
	digest *Digest // nil: of a copy
	same   func(a, b T) bool
}

// NewTree makes an empty tree. same, which may be nil, tells quickly of two items that they have one record, if it can.
func NewTree[T Value](d *Digest, less func(a, b T) bool, same func(a, b T) bool) *Tree[T] {
	return &Tree[T]{BTreeG: btree.NewBTreeGOptions(less, btree.Options{NoLocks: true}), digest: d, same: same}
}

// Copy is a copy in constant time, for reading only.
func (t *Tree[T]) Copy() *Tree[T] { return &Tree[T]{BTreeG: t.BTreeG.Copy()} }

// Set is btree.BTreeG's.
func (t *Tree[T]) Set(item T) (old T, replaced bool) {
	if old, replaced = t.BTreeG.Set(item); replaced {
		if t.same != nil && t.same(old, item) {
			return old, true // the one is as good in the digest as the other
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
	// Len is how many values it has.
	Len() int
	eachValue(visit func(Value) bool) bool
}

// Each visits what is hashed of tables, one after the other, until visit answers false.
func Each(visit func(Value) bool, tables ...Table) {
	for _, table := range tables {
		if !table.eachValue(visit) {
			return
		}
	}
}
