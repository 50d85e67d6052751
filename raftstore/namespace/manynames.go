package namespace

import (
	"fmt"
	"slices"

	"lockfs/raftstore/storepb"
)

// A write to a lock is evaluated for each name, since each has a token, a holder and events of its own. So a
// lock has few names. Data may have many ([MaxLinks]), and no command visits them. A file with more names
// than a lock may have is data for good, whatever its content.

// mayHaveMore refuses a name beyond the limit of a lock. Half of the limit is for the file's owner and root
// alone, also while the file is data. So no other user can make a file data for good, and its owner can make
// it a lock later.
func (j *evaluator) mayHaveMore(by *storepb.Caller, in *inode) *storepb.Result {
	if in.manyNames {
		return nil
	}
	if isOther := by.GetUid() != 0 && by.GetUid() != in.uid; isOther && in.nlink >= maxLockNames/2 {
		return tooManyNames("the file has %d names, and only its owner and root can add more", maxLockNames/2)
	}
	if in.nlink < maxLockNames {
		return nil
	}
	isLock := func(e *entry) bool { return j.isLock(e, in) || e.pending != nil }
	if slices.ContainsFunc(j.tree.namesOf(in.ino), isLock) {
		return tooManyNames("the file is a lock, and a lock has %d names at most", maxLockNames)
	}
	return nil
}

func tooManyNames(format string, most int) *storepb.Result {
	return &storepb.Result{Code: storepb.Code_TOO_MANY_LINKS, Message: fmt.Sprintf(format, most)}
}

// prepareForMore makes a file data for good before it gets more names than a lock may have.
func (ns *Namespace) prepareForMore(in *inode) *inode {
	if in.manyNames || in.nlink < maxLockNames {
		return in
	}
	data := *in
	data.manyNames = true
	data.facts, data.gone, data.evidence = nil, nil, nil
	ns.tree.putInode(&data)
	for _, e := range ns.tree.namesOf(in.ino) {
		named := *e
		named.known, named.creator, named.stale = nil, nil, nil
		ns.putEntryEvaluated(&named, &data)
	}
	return &data
}
