package namespace

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

func (ns *Namespace) setQuota(by *storepb.Caller, op *storepb.SetQuota) *storepb.Result {
	q := &storepb.Quota{Uid: op.GetQuota().GetUid(), MaxInodes: op.GetQuota().GetMaxInodes(), MaxBytes: op.GetQuota().GetMaxBytes()}
	if q.GetMaxInodes() == 0 && q.GetMaxBytes() == 0 {
		return &storepb.Result{Code: storepb.Code_INVALID, Message: "the quota limits nothing; give --inodes, --bytes or both"}
	}
	if len(op.GetPath()) == 0 {
		return ns.setUserQuota(by, q)
	}
	dir, refused := ns.quotaDir(op.GetPath())
	if refused != nil {
		return refused
	}
	before, known := ns.tree.quotas.byDir.Get(dir)
	if !known {
		if ns.tree.quotas.byDir.Len() >= MaxQuotas {
			return tooManyQuotas()
		}
	}
	q.Dir, q.Uid = uint64(dir), 0
	ns.tree.quotas.byDir.Set(dir, q)
	if !proto.Equal(before, q) { // else it is a repetition
		ns.emitQuota(by, eventQuotaSet, dir, describeQuota(q))
	}
	return ok()
}

func (ns *Namespace) setUserQuota(by *storepb.Caller, q *storepb.Quota) *storepb.Result {
	if q.GetUid() == 0 {
		return &storepb.Result{Code: storepb.Code_INVALID, Message: "root has no share, so it can have no quota"}
	}
	before, known := ns.tree.usage.quotas.Get(q.GetUid())
	if !known && ns.tree.usage.quotas.Len() >= MaxQuotas {
		return tooManyQuotas()
	}
	ns.tree.usage.quotas.Set(q.GetUid(), q)
	if !proto.Equal(before, q) {
		ns.emitAction(by, eventQuotaSet, "", fmt.Sprintf("of user %d: %s", q.GetUid(), describeQuota(q)))
	}
	return ok()
}

func tooManyQuotas() *storepb.Result {
	return &storepb.Result{Code: storepb.Code_NO_SPACE, Message: "there are too many quotas; see `lockfs quota list`"}
}

func (ns *Namespace) deleteQuota(by *storepb.Caller, op *storepb.DeleteQuota) *storepb.Result {
	none := &storepb.Result{Code: storepb.Code_NOT_FOUND, Message: "there is no such quota; see `lockfs quota list`"}
	if len(op.GetPath()) == 0 {
		if _, found := ns.tree.usage.quotas.Delete(op.GetUid()); !found {
			return none
		}
		ns.emitAction(by, eventQuotaDeleted, "", fmt.Sprintf("of user %d", op.GetUid()))
		return ok()
	}
	dir, refused := ns.quotaDir(op.GetPath())
	if refused != nil {
		return refused
	}
	if _, found := ns.tree.quotas.byDir.Get(dir); !found {
		return none
	}
	ns.tree.quotas.byDir.Delete(dir)
	ns.emitQuota(by, eventQuotaDeleted, dir, "")
	return ok()
}

// emitQuota emits an event of a directory's quota, visible to users with access to the directory.
func (ns *Namespace) emitQuota(by *storepb.Caller, event string, dir ids.Inode, reason string) {
	e := ns.tree.nameOf(dir)
	in, _ := ns.tree.inode(dir)
	ns.emit(&storepb.Event{
		Event: event, Path: []byte(ns.tree.path(e)), Parent: uint64(e.parent), Mode: in.mode, Uid: in.uid, Gid: in.gid,
		Reason: reason, By: withoutLineage(by),
	})
}

func describeQuota(q *storepb.Quota) string {
	var limits []string
	if most := q.GetMaxInodes(); most > 0 {
		limits = append(limits, fmt.Sprintf("%d inodes", most))
	}
	if most := q.GetMaxBytes(); most > 0 {
		limits = append(limits, fmt.Sprintf("%d bytes", most))
	}
	return strings.Join(limits, ", ")
}

// quotaDir returns the directory of a path. The root has no quota: the servers' limits bind it.
func (ns *Namespace) quotaDir(path []byte) (dir ids.Inode, refused *storepb.Result) {
	dir = RootIno
	for name := range strings.SplitSeq(string(path), "/") {
		if name == "" || name == "." {
			continue
		}
		e, found := ns.tree.entry(dir, []byte(name))
		if !found {
			return 0, &storepb.Result{Code: storepb.Code_NOT_FOUND, Message: "there is no such directory"}
		}
		if _, code := ns.tree.directory(e.ino); code != storepb.Code_OK {
			return 0, &storepb.Result{Code: code, Message: "that is no directory"}
		}
		dir = e.ino
	}
	if dir == RootIno {
		return 0, &storepb.Result{
			Code: storepb.Code_INVALID, Message: "the limits for everything are --max-inodes and --max-bytes of the servers",
		}
	}
	return dir, nil
}

func (t *tree) listQuotas() (quotas []*storepb.QuotaUsage) {
	t.quotas.byDir.Scan(func(dir ids.Inode, q *storepb.Quota) bool {
		used := &t.below[dir].used
		path := ""
		if e := t.nameOf(dir); e != nil {
			path = t.path(e)
		}
		quotas = append(quotas, &storepb.QuotaUsage{Quota: q, Path: []byte(path), Inodes: used.inodes, Bytes: used.bytes})
		return true
	})
	t.usage.quotas.Scan(func(uid uint32, q *storepb.Quota) bool {
		used := t.usage.usageOf(uid)
		quotas = append(quotas, &storepb.QuotaUsage{Quota: q, Inodes: used.inodes, Bytes: used.bytes})
		return true
	})
	return quotas
}

// fsStats returns the use and the limits for a user at an inode: those for all together, or of the quota that
// leaves less. A file counts at its first name.
func (t *tree) fsStats(uid uint32, ino ids.Inode) *storepb.FsStats {
	stats := t.usage.fsStats(uid)
	dir := ino
	if in, found := t.inode(ino); !found {
		return stats
	} else if !in.isDir() {
		e := t.nameOf(ino)
		if e == nil {
			return stats
		}
		dir = e.parent
	}
	t.eachQuota(dir, func(dir ids.Inode, used *usage) {
		limit := t.quotaOf(dir)
		if left := limit.inodes - min(limit.inodes, used.inodes); left < stats.MaxInodes-min(stats.MaxInodes, stats.Inodes) {
			stats.Inodes, stats.MaxInodes = used.inodes, limit.inodes
		}
		left := used.bytesLeftOf(limit)
		if left < stats.MaxBytes-min(stats.MaxBytes, stats.Bytes) {
			stats.Bytes, stats.MaxBytes = used.bytes, limit.bytes
		}
		stats.FreeBytes = min(stats.FreeBytes, left)
	})
	return stats
}
