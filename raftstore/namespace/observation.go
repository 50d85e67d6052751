package namespace

import (
	"lockfs/formats/lockfact"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// observation describes a name as a caller sees it. An emptied lock counts as a lock here until its next
// content. Mounts cache the answer under a lease, and the passing of time revokes no lease.
func (j *evaluator) observation(e *entry) *storepb.Observation {
	in, found := j.tree.inode(e.ino)
	isLock := found && (j.isLock(e, in) || in.facts == nil && e.known != nil)
	return &storepb.Observation{Parent: uint64(e.parent), Name: []byte(e.name), Token: uint64(e.token), Data: !isLock}
}

// observations returns the observation of a name for a caller that read or created it, and that of its
// directory, which may be a lock.
func (j *evaluator) observations(e *entry) []*storepb.Observation {
	seen := []*storepb.Observation{j.observation(e)}
	if dir := j.tree.nameOf(e.parent); dir != nil {
		seen = append(seen, j.observation(dir))
	}
	return seen
}

// observedOther returns the observed token if the caller observed another lock of the name, or of a
// directory above it. 0: it did not.
func (j *evaluator) observedOther(seen []*storepb.Observation, e *entry) ids.Token {
	if len(seen) == 0 {
		return 0
	}
	for e != nil {
		for _, o := range seen {
			if ids.Inode(o.GetParent()) != e.parent || string(o.GetName()) != e.name || ids.Token(o.GetToken()) == e.token {
				continue
			}
			if in, found := j.tree.inode(e.ino); found && j.mayBeLock(e, in) {
				return ids.Token(o.GetToken())
			}
		}
		e = j.tree.nameOf(e.parent)
	}
	return 0
}

func observedEmpty(seen []*storepb.Observation, e *entry) bool {
	for _, o := range seen {
		if ids.Inode(o.GetParent()) == e.parent && string(o.GetName()) == e.name {
			return o.GetEmpty()
		}
	}
	return false
}

// mayBeLock reports whether an observation of a lock of this name counts: the present file may be a lock too.
// Some locks have no telling content.
func (j *evaluator) mayBeLock(e *entry, in *inode) bool {
	if j.isLock(e, in) {
		return true
	}
	return e.exclusive && !in.isDir() && !in.kernelLocked && lockRule(j.ruleFor(e)).Format != lockfact.Data
}
