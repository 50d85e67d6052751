package namespace

import (
	"cmp"

	"github.com/tidwall/btree"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/ids"
)

// processIndex indexes the locks and the created names by process.
type processIndex struct {
	byProcess *btree.BTreeG[heldInode]
	byCreator *btree.BTreeG[createdName]
	perHost   map[string]int // size of byProcess for each host
}

func newProcessIndex() processIndex {
	options := btree.Options{NoLocks: true}
	return processIndex{
		byProcess: btree.NewBTreeGOptions(lessHeldInode, options), byCreator: btree.NewBTreeGOptions(lessCreated, options),
		perHost: make(map[string]int),
	}
}

func (x *processIndex) set(h heldInode) {
	if _, replaced := x.byProcess.Set(h); !replaced {
		x.perHost[h.host()]++
	}
}

func (x *processIndex) delete(h heldInode) {
	if _, found := x.byProcess.Delete(h); !found {
		return
	}
	if x.perHost[h.host()]--; x.perHost[h.host()] == 0 {
		delete(x.perHost, h.host())
	}
}

// heldInode is an inode with a lock that lives as long as a process.
type heldInode struct {
	says *facts
	ino  ids.Inode
}

func (h heldInode) host() string { return h.says.Host }

// firstOf returns the begin of a host, or of one of its processes, in the index of locks.
func firstOf(host string, by *process) heldInode {
	return heldInode{says: &facts{Facts: lockfact.Facts{Host: host}, process: by}}
}

func lessHeldInode(a, b heldInode) bool {
	var p, q processID
	if a.says.process != nil {
		p = a.says.process.processID
	}
	if b.says.process != nil {
		q = b.says.process.processID
	}
	return cmp.Or(cmp.Compare(a.host(), b.host()), compareProcesses(p, q), cmp.Compare(a.ino, b.ino)) < 0
}

// createdName is a name in the index of created names.
type createdName struct {
	host   string
	by     processID
	parent ids.Inode
	name   string
}

func lessCreated(a, b createdName) bool {
	return cmp.Or(cmp.Compare(a.host, b.host), compareProcesses(a.by, b.by), cmp.Compare(a.parent, b.parent), cmp.Compare(a.name, b.name)) < 0
}

func (x *processIndex) heldOn(host string, by *process) []heldInode {
	var found []heldInode
	x.byProcess.Ascend(firstOf(host, by), func(h heldInode) bool {
		if h.host() != host || by != nil && h.says.process.processID != by.processID {
			return false
		}
		found = append(found, h)
		return true
	})
	return found
}

// creatorHost returns the names with creators on a host, or with one process as creator. A name comes once
// for each of its creator's processes.
func (x *processIndex) createdOn(host string, by *processID) []createdName {
	from := createdName{host: host}
	if by != nil {
		from.by = *by
	}
	var found []createdName
	x.byCreator.Ascend(from, func(m createdName) bool {
		if m.host != host || by != nil && m.by != *by {
			return false
		}
		found = append(found, m)
		return true
	})
	return found
}

// holdsAny reports whether processes of a host hold or made anything.
func (x *processIndex) holdsAny(host string) bool {
	found := false
	x.byProcess.Ascend(firstOf(host, nil), func(h heldInode) bool {
		found = h.host() == host
		return false
	})
	x.byCreator.Ascend(createdName{host: host}, func(m createdName) bool {
		found = found || m.host == host
		return false
	})
	return found
}

// afterBoot is larger than each process of a boot, and smaller than those of the next boot in order.
func afterBoot(boot string) processID { return processID{bootID: intern(boot + "\x00")} }

// heldInOtherBoots returns the locks of a host's processes of other boots than this one.
func (x *processIndex) heldInOtherBoots(host, boot string) (found []heldInode) {
	add := func(h heldInode) bool {
		other := h.host() == host && h.says.process.bootID.String() != boot
		if other {
			found = append(found, h)
		}
		return other
	}
	x.byProcess.Ascend(firstOf(host, nil), add)
	x.byProcess.Ascend(firstOf(host, &process{processID: afterBoot(boot)}), add)
	return found
}

// createdInOtherBoots returns the names with creators on a host in other boots than this one.
func (x *processIndex) createdInOtherBoots(host, boot string) (found []createdName) {
	add := func(m createdName) bool {
		other := m.host == host && m.by.bootID.String() != boot
		if other {
			found = append(found, m)
		}
		return other
	}
	x.byCreator.Ascend(createdName{host: host}, add)
	x.byCreator.Ascend(createdName{host: host, by: afterBoot(boot)}, add)
	return found
}

// processesOn returns, once each, the processes of a host that hold a lock or are creators.
func (x *processIndex) processesOn(host string) []*process {
	var found []*process
	known := make(map[processID]bool)
	add := func(p *process) {
		if !known[p.processID] {
			known[p.processID] = true
			found = append(found, p)
		}
	}
	for _, h := range x.heldOn(host, nil) {
		add(h.says.process)
	}
	for _, m := range x.createdOn(host, nil) {
		add(&process{processID: m.by})
	}
	return found
}
