package fusefs

import (
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"lockfs/raftstore/storepb"
)

// controlNode is what can be looked up in the control directory. Two that are equal are one node, and have
// one number; so nodes are values that can be compared.
type controlNode interface {
	// attr answers new attributes, without the number.
	attr(c *control) (*storepb.Attr, syscall.Errno)
}

type controlDir interface {
	controlNode
	lookup(c *control, name string) (controlNode, *storepb.Attr, syscall.Errno)
	// list answers the entries whose offsets come after one, about as many as wanted. None: it has no more.
	list(c *control, after uint64, wanted uint32) ([]fuse.DirEntry, syscall.Errno)
}

type controlFile interface {
	controlNode
	open(c *control, in *fuse.OpenIn) (controlHandle, syscall.Errno)
}

// controlHandle is one open file.
type controlHandle interface {
	// read answers bytes that are never changed again. None: that was all.
	read(interrupted <-chan struct{}, in *fuse.ReadIn) ([]byte, syscall.Errno)
	// flags says how the kernel is to treat it (FOPEN_*).
	flags() uint32
}

// snapshot is a file whose content is worked out when it is opened.
type snapshot []byte

func (s snapshot) read(_ <-chan struct{}, in *fuse.ReadIn) ([]byte, syscall.Errno) {
	start := min(in.Offset, uint64(len(s)))
	end := min(start+uint64(in.Size), uint64(len(s)))
	return s[start:end], 0
}

func (s snapshot) flags() uint32 { return fuse.FOPEN_DIRECT_IO }

// controlBit is set in every node id of the control directory. Inode numbers, which count up from 1, never
// have it.
const controlBit = 1 << 63

// nodeTable gives nodes the numbers by which the kernel names them, for as long as it knows them.
type nodeTable struct {
	mu    sync.Mutex
	last  uint64
	ids   map[controlNode]uint64
	known map[uint64]*knownNode
}

type knownNode struct {
	controlNode
	lookups uint64 // that the kernel has not forgotten
}

func newNodeTable() *nodeTable {
	return &nodeTable{last: controlBit, ids: make(map[controlNode]uint64), known: make(map[uint64]*knownNode)}
}

// use counts an answer that tells the kernel of a node.
func (t *nodeTable) use(node controlNode) (id uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	id, found := t.ids[node]
	if !found {
		t.last++
		id = t.last
		t.ids[node] = id
		t.known[id] = &knownNode{controlNode: node}
	}
	t.known[id].lookups++
	return id
}

// get answers nil for an id that the kernel was never told or has forgotten.
func (t *nodeTable) get(id uint64) controlNode {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k, found := t.known[id]; found {
		return k.controlNode
	}
	return nil
}

func (t *nodeTable) forget(id, lookups uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k, found := t.known[id]
	if !found {
		return
	}
	k.lookups -= min(lookups, k.lookups)
	if k.lookups == 0 {
		delete(t.known, id)
		delete(t.ids, k.controlNode)
	}
}
