package namespace

import (
	"fmt"
	"slices"

	"lockfs/raftstore/storepb"
)

// A write to a lock is judged for each name, since each has a token, a holder and events of its own. So a
// lock has few names. Data may have many ([MaxLinks]), and no command visits them. A file with more names
// than a lock may have is data for good, whatever its content.

// mayHaveMore refuses a name beyond the limit of a lock. Half of the limit is for its owner and root alone.
func (j *judge) mayHaveMore(by *storepb.Caller, in *inode) *storepb.Result {
	most := uint32(mostLockNames)
	if by.GetUid() != 0 && by.GetUid() != in.uid {
		most /= 2
	}
	if in.manyNames || in.nlink < most {
		return nil
	}
	isLock := func(e *entry) bool { return j.isLock(e, in) || e.pending != nil }
	if slices.ContainsFunc(j.tree.namesOf(in.ino), isLock) {
		return &storepb.Result{Code: storepb.Code_TOO_MANY_LINKS, Message: fmt.Sprintf("the file is a lock, and a lock has %d names at most", most)}
	}
	return nil
}

// prepareForMore makes a file data for good before it gets more names than a lock may have.
func (k *keeper) prepareForMore(in *inode) *inode {
	if in.manyNames || in.nlink < mostLockNames {
		return in
	}
	data := *in
	data.manyNames = true
	data.facts, data.gone, data.evidence = nil, nil, nil
	k.tree.putInode(&data)
	for _, e := range k.tree.namesOf(in.ino) {
		named := *e
		named.known, named.maker, named.stale = nil, nil, nil
		k.putJudged(&named, &data)
	}
	return &data
}
