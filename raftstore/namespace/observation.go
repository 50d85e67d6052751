package namespace

import (
	"lockfs/formats/lockfact"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// observation is a look at a name. An emptied lock counts as a lock here until its next content, since mounts cache the answer under a
// lease, and no lease is revoked as time passes.
func (j *judge) observation(e *entry) *storepb.Observation {
	in, found := j.tree.inode(e.ino)
	isLock := found && (j.isLock(e, in) || in.facts == nil && e.known != nil)
	return &storepb.Observation{Parent: uint64(e.parent), Name: []byte(e.name), Token: uint64(e.token), Data: !isLock}
}

// observations is what somebody has seen who read or made what a name is: that, and the lock that its directory may be.
func (j *judge) observations(e *entry) []*storepb.Observation {
	seen := []*storepb.Observation{j.observation(e)}
	if dir := j.tree.nameOf(e.parent); dir != nil {
		seen = append(seen, j.observation(dir))
	}
	return seen
}

// lookedAtAnother answers the token that the caller saw, if that was another lock of the name, or in a
// directory that was another one. 0: it was not.
func (j *judge) lookedAtAnother(seen []*storepb.Observation, e *entry) ids.Token {
	if len(seen) == 0 {
		return 0
	}
	for e != nil {
		for _, o := range seen {
			if ids.Inode(o.GetParent()) != e.parent || string(o.GetName()) != e.name || ids.Token(o.GetToken()) == e.token {
				continue
			}
			if in, found := j.tree.inode(e.ino); found && j.isJudged(e, in) {
				return ids.Token(o.GetToken())
			}
		}
		e = j.tree.nameOf(e.parent)
	}
	return 0
}

// lookedAtEmpty tells whether the caller judged a lock in which there was nothing to judge.
func lookedAtEmpty(seen []*storepb.Observation, e *entry) bool {
	for _, o := range seen {
		if ids.Inode(o.GetParent()) == e.parent && string(o.GetName()) == e.name {
			return o.GetEmpty()
		}
	}
	return false
}

// isJudged tells whether a look at a lock of that name counts: what is there may be a lock too. Not every lock has something in
// it that can be judged.
func (j *judge) isJudged(e *entry, in *inode) bool {
	if j.isLock(e, in) {
		return true
	}
	return e.exclusive && !in.isDir() && !in.kernelLocked && lockRule(j.ruleFor(e)).Format != lockfact.Data
}
