package raftstore

import "lockfs/raftstore/storepb"

// maxUndo bounds how many locks a reply keeps to give them back, so that a snapshot can always be read again.
// A command that changes more of them is not given back; what it locked still goes.
const maxUndo = 256

func newLockUndo(want *advisory) *storepb.LockUndo {
	return &storepb.LockUndo{Ino: want.ino, Kind: want.kind, Owner: want.owner}
}

func undoMessages(locks []*advisory) []*storepb.AdvisoryLock {
	if len(locks) > maxUndo {
		return nil
	}
	var messages []*storepb.AdvisoryLock
	for _, a := range plain(locks) {
		messages = append(messages, a.message())
	}
	return messages
}

func advisoriesFrom(messages []*storepb.AdvisoryLock) []*advisory {
	var locks []*advisory
	for _, m := range messages {
		locks = append(locks, advisoryFrom(m))
	}
	return locks
}

// noteGrant notes what a lock is in the place of: also what its command had given up for it.
func noteGrant(undo *storepb.LockUndo, replaced []*advisory) {
	undo.Before = append(undoMessages(replaced), undo.GetGivenUp()...)
	undo.GivenUp = nil
}

// noteLateGrant is noteGrant for a request whose command was answered before.
func (ns *Namespace) noteLateGrant(granted *advisory, replaced []*advisory) {
	ns.changeUndos(granted.session, func(seq uint64, undo *storepb.LockUndo) *storepb.LockUndo {
		if seq != granted.seq {
			return nil
		}
		noted := copyUndo(undo)
		noteGrant(noted, replaced)
		return noted
	})
}

// ownerGoesOn is for every command of an owner, and every lock that it gets: what it released there before,
// it knows to be released, whatever it was told.
func (ns *Namespace) ownerGoesOn(at *advisory) {
	ns.changeUndos(at.session, func(seq uint64, undo *storepb.LockUndo) *storepb.LockUndo {
		if !ofOwner(undo, at) || seq == at.seq || len(undo.GetGivenUp()) == 0 {
			return nil
		}
		changed := copyUndo(undo)
		changed.GivenUp = undoMessages(without(advisoriesFrom(undo.GetGivenUp()), at))
		return changed
	})
}

// forgetGivenUp is for a process that is gone: nobody would release what it were given back.
func (ns *Namespace) forgetGivenUp(session uint64) {
	ns.changeUndos(session, func(_ uint64, undo *storepb.LockUndo) *storepb.LockUndo {
		if len(undo.GetGivenUp()) == 0 {
			return nil
		}
		changed := copyUndo(undo)
		changed.GivenUp = nil
		return changed
	})
}

// takeBackLock makes it as if a command had never come whose outcome nobody was told, also for those that
// may be taken back later. What others got meanwhile stays theirs, and so does what the owner itself got.
func (ns *Namespace) takeBackLock(session, seq uint64, undo *storepb.LockUndo) {
	if request, waiting := ns.request(session, seq); waiting {
		ns.deleteWaiter(request)
	}
	owner := &advisory{ino: undo.GetIno(), kind: undo.GetKind(), session: session, owner: undo.GetOwner()}
	ns.takeBackGrant(owner, seq, advisoriesFrom(undo.GetBefore()))
	for _, lock := range advisoriesFrom(undo.GetGivenUp()) {
		ns.giveBack(lock, nil)
	}
	ns.serveQueue(owner.ino, owner.kind)
}

// takeBackGrant makes it as if an owner had never got the locks of a command, but still had those before.
func (ns *Namespace) takeBackGrant(owner *advisory, seq uint64, before []*advisory) {
	for _, own := range ns.ownedBy(owner) {
		if own.seq == seq {
			ns.deleteAdvisory(own)
			for _, lock := range within(before, own) {
				ns.giveBack(lock, own)
			}
		}
	}
	ns.changeUndos(owner.session, func(_ uint64, other *storepb.LockUndo) *storepb.LockUndo {
		if !ofOwner(other, owner) {
			return nil
		}
		changed := copyUndo(other)
		changed.Before = undoMessages(instead(advisoriesFrom(other.GetBefore()), seq, before))
		changed.GivenUp = undoMessages(instead(advisoriesFrom(other.GetGivenUp()), seq, before))
		return changed
	})
}

// giveBack restores a lock where nobody else has it by now. Where others share it, its owner goes on to share
// it if it did.
func (ns *Namespace) giveBack(lock, had *advisory) {
	free := []*advisory{lock}
	ns.eachHeld(lock.ino, lock.kind, func(a *advisory) bool {
		if a.excludes(lock) {
			free = without(free, a)
		}
		return true
	})
	for _, piece := range free {
		ns.putAdvisory(piece)
	}
	if had == nil || had.exclusive || !lock.exclusive {
		return
	}
	shared := within([]*advisory{had}, lock)
	for _, piece := range free {
		shared = without(shared, piece)
	}
	for _, piece := range shared {
		ns.putAdvisory(piece)
	}
}

// changeUndos visits how the locks of a session can be taken back. change answers what is to be instead, or
// nil.
func (ns *Namespace) changeUndos(session uint64, change func(seq uint64, undo *storepb.LockUndo) *storepb.LockUndo) {
	var changed []*reply
	ns.replies.Ascend(&reply{session: session}, func(r *reply) bool {
		if r.session != session {
			return false
		}
		if undo := r.undo.GetLock(); undo != nil {
			if other := change(r.seq, undo); other != nil {
				changed = append(changed, &reply{session: session, seq: r.seq, result: r.result, undo: &storepb.Undo{Lock: other}})
			}
		}
		return true
	})
	for _, r := range changed {
		ns.replies.Set(r)
	}
}

func copyUndo(undo *storepb.LockUndo) *storepb.LockUndo {
	return &storepb.LockUndo{
		Ino: undo.GetIno(), Kind: undo.GetKind(), Owner: undo.GetOwner(), Before: undo.GetBefore(), GivenUp: undo.GetGivenUp(),
	}
}

func ofOwner(undo *storepb.LockUndo, owner *advisory) bool {
	return undo.GetIno() == owner.ino && undo.GetKind() == owner.kind && undo.GetOwner() == owner.owner
}

// within answers what locks have of a range.
func within(locks []*advisory, of *advisory) []*advisory {
	var parts []*advisory
	for _, a := range locks {
		if a.overlaps(of) {
			part := *a
			part.start, part.end = max(a.start, of.start), min(a.end, of.end)
			parts = append(parts, &part)
		}
	}
	return parts
}

// without answers what locks have beside a range.
func without(locks []*advisory, cut *advisory) []*advisory {
	var left []*advisory
	for _, a := range locks {
		left = append(left, a.without(cut)...)
	}
	return left
}

// instead puts what was there before a command in the place of its locks.
func instead(locks []*advisory, seq uint64, before []*advisory) []*advisory {
	var changed []*advisory
	for _, a := range locks {
		if a.seq == seq {
			changed = append(changed, within(before, a)...)
		} else {
			changed = append(changed, a)
		}
	}
	return changed
}
