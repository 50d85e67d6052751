package control

import (
	"sync"

	"lockfs/raftstore/ids"
)

// controlBit is set in every node id of the control directory. Inode numbers count up from 1 and never have
// it.
const controlBit = 1 << 63

// nodeTable numbers the nodes known to the kernel.
type nodeTable struct {
	mu      sync.Mutex
	last    ids.Inode
	numbers map[node]ids.Inode
	known   map[ids.Inode]*knownNode
}

type knownNode struct {
	node
	lookups uint64 // not yet forgotten by the kernel
}

func newNodeTable() *nodeTable {
	return &nodeTable{last: controlBit, numbers: make(map[node]ids.Inode), known: make(map[ids.Inode]*knownNode)}
}

// use counts an answer with a node.
func (t *nodeTable) use(node node) (id ids.Inode) {
	t.mu.Lock()
	defer t.mu.Unlock()
	id, found := t.numbers[node]
	if !found {
		t.last++
		id = t.last
		t.numbers[node] = id
		t.known[id] = &knownNode{node: node}
	}
	t.known[id].lookups++
	return id
}

// get returns nil for an id unknown to the kernel or forgotten.
func (t *nodeTable) get(id ids.Inode) node {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k, found := t.known[id]; found {
		return k.node
	}
	return nil
}

func (t *nodeTable) forget(id ids.Inode, lookups uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k, found := t.known[id]
	if !found {
		return
	}
	k.lookups -= min(lookups, k.lookups)
	if k.lookups == 0 {
		delete(t.known, id)
		delete(t.numbers, k.node)
	}
}

// Has reports whether a node id is of the control directory.
func Has(id ids.Inode) bool { return id&controlBit != 0 }
