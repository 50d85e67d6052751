package namespace

import (
	"cmp"

	"github.com/tidwall/btree"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/ids"
)

// holdings indexes the locks and the created names by process.
type holdings struct {
	byProcess *btree.BTreeG[held]
	byMaker   *btree.BTreeG[made]
	perHost   map[string]int // size of byProcess for each host
}

func newHoldings() holdings {
	options := btree.Options{NoLocks: true}
	return holdings{
		byProcess: btree.NewBTreeGOptions(lessHeld, options), byMaker: btree.NewBTreeGOptions(lessMade, options),
		perHost: make(map[string]int),
	}
}

func (x *holdings) set(h held) {
	if _, replaced := x.byProcess.Set(h); !replaced {
		x.perHost[h.host()]++
	}
}

func (x *holdings) delete(h held) {
	if _, found := x.byProcess.Delete(h); !found {
		return
	}
	if x.perHost[h.host()]--; x.perHost[h.host()] == 0 {
		delete(x.perHost, h.host())
	}
}

// held is an inode with a lock that lives as long as a process.
type held struct {
	says *facts
	ino  ids.Inode
}

func (h held) host() string { return h.says.Host }

// firstOf returns the begin of a host, or of one of its processes, in the index of locks.
func firstOf(host string, by *process) held {
	return held{says: &facts{Facts: lockfact.Facts{Host: host}, process: by}}
}

func lessHeld(a, b held) bool {
	var p, q processID
	if a.says.process != nil {
		p = a.says.process.processID
	}
	if b.says.process != nil {
		q = b.says.process.processID
	}
	return cmp.Or(cmp.Compare(a.host(), b.host()), compareProcesses(p, q), cmp.Compare(a.ino, b.ino)) < 0
}

// made is a name in the index of created names.
type made struct {
	host   string
	by     processID
	parent ids.Inode
	name   string
}

func lessMade(a, b made) bool {
	return cmp.Or(cmp.Compare(a.host, b.host), compareProcesses(a.by, b.by), cmp.Compare(a.parent, b.parent), cmp.Compare(a.name, b.name)) < 0
}

func (x *holdings) heldOn(host string, by *process) []held {
	var found []held
	x.byProcess.Ascend(firstOf(host, by), func(h held) bool {
		if h.host() != host || by != nil && h.says.process.processID != by.processID {
			return false
		}
		found = append(found, h)
		return true
	})
	return found
}

// madeOn returns the names with makers on a host, or with one process as maker. A name comes once for each of
// its maker's processes.
func (x *holdings) madeOn(host string, by *processID) []made {
	from := made{host: host}
	if by != nil {
		from.by = *by
	}
	var found []made
	x.byMaker.Ascend(from, func(m made) bool {
		if m.host != host || by != nil && m.by != *by {
			return false
		}
		found = append(found, m)
		return true
	})
	return found
}

// holdsAny reports whether processes of a host hold or made anything.
func (x *holdings) holdsAny(host string) bool {
	found := false
	x.byProcess.Ascend(firstOf(host, nil), func(h held) bool {
		found = h.host() == host
		return false
	})
	x.byMaker.Ascend(made{host: host}, func(m made) bool {
		found = found || m.host == host
		return false
	})
	return found
}

// afterBoot is larger than each process of a boot, and smaller than those of the next boot in order.
func afterBoot(boot string) processID { return processID{bootID: share(boot + "\x00")} }

// heldInOtherBoots returns the locks of a host's processes of other boots than this one.
func (x *holdings) heldInOtherBoots(host, boot string) (found []held) {
	add := func(h held) bool {
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

// madeInOtherBoots returns the names with makers on a host in other boots than this one.
func (x *holdings) madeInOtherBoots(host, boot string) (found []made) {
	add := func(m made) bool {
		other := m.host == host && m.by.bootID.String() != boot
		if other {
			found = append(found, m)
		}
		return other
	}
	x.byMaker.Ascend(made{host: host}, add)
	x.byMaker.Ascend(made{host: host, by: afterBoot(boot)}, add)
	return found
}

// processesOn returns, once each, the processes of a host that hold a lock or are makers.
func (x *holdings) processesOn(host string) []*process {
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
	for _, m := range x.madeOn(host, nil) {
		add(&process{processID: m.by})
	}
	return found
}
