package namespace

import (
	"lockfs/formats/lockfact"
	"lockfs/raftstore/fault"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

func (j *judge) lookAt(e *entry) *storepb.Look {
	in, found := j.tree.inode(e.ino)
	return &storepb.Look{Parent: uint64(e.parent), Name: []byte(e.name), Token: uint64(e.token), Data: !found || !j.isLock(e, in) && !fault.LookAtData}
}

// looksAt is what somebody has seen who read or made what a name is: that, and the lock that its directory may be.
func (j *judge) looksAt(e *entry) []*storepb.Look {
	looks := []*storepb.Look{j.lookAt(e)}
	if dir := j.tree.nameOf(e.parent); dir != nil {
		looks = append(looks, j.lookAt(dir))
	}
	return looks
}

// lookedAtAnother answers the token that the caller saw, if that was another lock of the name, or in a
// directory that was another one. 0: it was not.
func (j *judge) lookedAtAnother(looks []*storepb.Look, e *entry) ids.Token {
	if len(looks) == 0 {
		return 0
	}
	for e != nil {
		for _, look := range looks {
			if ids.Inode(look.GetParent()) != e.parent || string(look.GetName()) != e.name || ids.Token(look.GetToken()) == e.token {
				continue
			}
			if in, found := j.tree.inode(e.ino); found && j.isJudged(e, in) {
				return ids.Token(look.GetToken())
			}
		}
		e = j.tree.nameOf(e.parent)
	}
	return 0
}

// lookedAtEmpty tells whether the caller judged a lock in which there was nothing to judge.
func lookedAtEmpty(looks []*storepb.Look, e *entry) bool {
	for _, look := range looks {
		if ids.Inode(look.GetParent()) == e.parent && string(look.GetName()) == e.name {
			return look.GetEmpty()
		}
	}
	return false
}

// isJudged tells whether a look at a lock of that name counts: what is there may be a lock too. Not every lock has something in
// it that can be judged.
func (j *judge) isJudged(e *entry, in *inode) bool {
	if j.isLock(e, in) || fault.LookAtData {
		return true
	}
	return e.exclusive && !in.isDir() && !in.kernelLocked && lockRule(j.ruleFor(e)).Format != lockfact.Data
}
