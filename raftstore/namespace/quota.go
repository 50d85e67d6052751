package namespace

import (
	"slices"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// eachQuota visits the quotas on the contents of a directory, the nearest first.
func (t *tree) eachQuota(dir ids.Inode, visit func(dir ids.Inode, used *usage)) {
	if t.quotas.byDir.Len() == 0 {
		return
	}
	for at := t.below[dir]; at != nil; at = at.up {
		if _, found := t.quotas.byDir.Get(at.dir); found {
			visit(at.dir, &at.used)
		}
	}
}

// bindsSame reports whether the same quotas bind the contents of two directories. Then a move between them
// changes no usage of a quota.
func (t *tree) bindsSame(a, b ids.Inode) bool {
	if a == b || t.quotas.byDir.Len() == 0 {
		return true
	}
	var ofA, ofB []ids.Inode
	t.eachQuota(a, func(dir ids.Inode, _ *usage) { ofA = append(ofA, dir) })
	t.eachQuota(b, func(dir ids.Inode, _ *usage) { ofB = append(ofB, dir) })
	return slices.Equal(ofA, ofB)
}

func (t *tree) quotaOf(dir ids.Inode) usage {
	limit := usage{inodes: ^uint64(0), bytes: ^uint64(0)}
	if q, found := t.quotas.byDir.Get(dir); found {
		if q.GetMaxInodes() != 0 {
			limit.inodes = q.GetMaxInodes()
		}
		if q.GetMaxBytes() != 0 {
			limit.bytes = q.GetMaxBytes()
		}
	}
	return limit
}

// roomBelow returns QUOTA if an addition in a directory exceeds a quota. Adding nothing is always possible.
func (t *tree) roomBelow(dir ids.Inode, inodes, bytes int64) storepb.Code {
	return t.roomToMove(0, dir, inodes, bytes)
}

// refuseBelow returns the result of a request the quota of a directory refuses; nil for OK.
func refuseBelow(code storepb.Code) *storepb.Result {
	if code == storepb.Code_OK {
		return nil
	}
	return &storepb.Result{
		Code: code, Message: "the quota of a directory above is used up; see `lockfs quota list`, and change it with `lockfs quota set PATH`",
	}
}

// roomToMove is roomBelow for an addition from another directory. Quotas that bind both stay the same.
func (t *tree) roomToMove(from, to ids.Inode, inodes, bytes int64) storepb.Code {
	bound := make(map[ids.Inode]bool)
	if from != 0 {
		t.eachQuota(from, func(dir ids.Inode, _ *usage) { bound[dir] = true })
	}
	code := storepb.Code_OK
	t.eachQuota(to, func(dir ids.Inode, used *usage) {
		if !bound[dir] && used.exceeds(t.quotaOf(dir), inodes, bytes) {
			code = storepb.Code_QUOTA
		}
	})
	return code
}

// roomToGrow is roomBelow for the growth of an inode, and of each of its names by ofName. ofName may be nil.
func (t *tree) roomToGrow(in, larger *inode, ofName func(*entry) int64) storepb.Code {
	more := larger.bytesByName() - in.bytesByName()
	if t.quotas.byDir.Len() == 0 || more <= 0 && ofName == nil {
		return storepb.Code_OK
	}
	grows := make(map[ids.Inode]int64)
	for _, e := range t.namesOf(in.ino) {
		ofThis := more
		if ofName != nil {
			ofThis += ofName(e)
		}
		t.eachQuota(e.parent, func(dir ids.Inode, _ *usage) { grows[dir] += ofThis })
	}
	for dir, more := range grows { // in no order: it matters only whether there is one
		if t.below[dir].used.exceeds(t.quotaOf(dir), 0, more) {
			return storepb.Code_QUOTA
		}
	}
	return storepb.Code_OK
}

// roomToRename checks whether a name, with everything below it, fits into the quotas at its new place.
// replaced is the inode it replaces, or nil.
func (t *tree) roomToRename(source, target *entry, moved, replaced *inode) storepb.Code {
	if t.bindsSame(source.parent, target.parent) {
		return storepb.Code_OK
	}
	adds := t.usageWith(source, moved)
	if replaced != nil {
		frees := t.usageWith(target, replaced)
		return t.roomToMove(source.parent, target.parent, int64(adds.inodes)-int64(frees.inodes), int64(adds.bytes)-int64(frees.bytes))
	}
	return t.roomToMove(source.parent, target.parent, int64(adds.inodes), int64(adds.bytes))
}

func (t *tree) usageWith(e *entry, in *inode) usage {
	var used usage
	if in.isDir() {
		used = t.below[in.ino].used
	}
	used.add(1, in.bytesByName()+e.bytes())
	return used
}
