package namespace

import (
	"cmp"
	"fmt"

	"lockfs/raftstore/digest"
	"lockfs/raftstore/storepb"
)

// ledger is what counts for users, and the limits of that.
type ledger struct {
	limits    limits
	used      usage             // by inodes and names, but for those that are forgotten soon
	usedBy    map[uint32]*usage // the same, by uid of the owner
	forgotten uint64            // bytes of inodes that are forgotten soon
	reserve   reserve
	quotas    *digest.Map[uint32, *storepb.Quota] // of users, in place of a share
}

// What counts as bytes, so that their sum is about what a voter needs for them in memory. An inode counts at least
// leastInode, so a small lock can always be emptied, filled again and renewed, also when nothing more may come.
const (
	inodeOverhead = 512     // of an inode, besides its content, target and extended attributes
	leastInode    = 1 << 10 // of an inode, with these
	nameOverhead  = 512     // of each of its names, with the name
	freeKnown     = 128     // bytes that a name may know of its holder without counting more
	heirBytes     = 64      // of each process in whose place its maker may act
)

// Limits of bytes, as far as no SetLimits command has said anything else.
const (
	DefaultMaxBytes = 256 << 20 // for all together
	// A user other than root has a share of the inodes and bytes: one in so many. It has room for smallLocks, but is no more than a half.
	defaultShare = 8
	// A part of the inodes and bytes is for root alone: one in so many.
	rootReserve = 64
	// A part of what others have of the bytes is for what is made small, one in so many: whatever they write into files, there is room
	// for locks, and for the file that one is renewed with.
	lockReserve = 16
)

// smallBytes is what an inode and its names count that are made small: what a lock needs, or a link to it.
const smallBytes = leastInode + 2*nameOverhead

// orphanBytes is how much the inodes may be that wait to be forgotten: they count for nobody.
const orphanBytes = 64 << 20

// usage is what counts for one user, or for all.
type usage struct {
	inodes uint64
	bytes  uint64
}

func (u *usage) add(inodes, bytes int64) {
	u.inodes += uint64(inodes)
	u.bytes += uint64(bytes)
}

// limits are those of a SetLimits command; 0: it has said nothing.
type limits struct {
	maxInodes        uint64
	maxBytes         uint64
	maxInodesPerUser uint64
	maxBytesPerUser  uint64
}

// whole is for all together.
func (l *limits) whole() usage {
	return usage{inodes: cmp.Or(l.maxInodes, DefaultMaxInodes), bytes: cmp.Or(l.maxBytes, DefaultMaxBytes)}
}

// share is for each user but root.
func (l *limits) share() usage {
	whole := l.whole()
	inodes := max(whole.inodes/defaultShare, min(smallLocks, whole.inodes/2))
	bytes := max(whole.bytes/defaultShare, min(smallLocks*smallBytes, whole.bytes/2))
	return usage{inodes: cmp.Or(l.maxInodesPerUser, inodes), bytes: cmp.Or(l.maxBytesPerUser, bytes)}
}

// shareOf is for one user: his quota, or the share of each.
func (l *ledger) shareOf(uid uint32) usage {
	share := l.limits.share()
	if q, found := l.quotas.Get(uid); found {
		share.inodes, share.bytes = cmp.Or(q.GetMaxInodes(), share.inodes), cmp.Or(q.GetMaxBytes(), share.bytes)
	}
	return share
}

// unreserved is for all together but root, without the common reserve.
func (l *limits) unreserved() usage {
	whole, reserved := l.whole(), l.reserved()
	return usage{
		inodes: whole.inodes - whole.inodes/rootReserve - reserved,
		bytes:  whole.bytes - whole.bytes/rootReserve - reserved*smallBytes,
	}
}

// forContent is as much of a limit as contents may use that are not small.
func (u usage) forContent() usage {
	return usage{inodes: u.inodes, bytes: u.bytes - u.bytes/lockReserve}
}

// set changes what a command sets.
func (l *limits) set(op *storepb.SetLimits) {
	l.maxInodes = cmp.Or(op.GetMaxInodes(), l.maxInodes)
	l.maxBytes = cmp.Or(op.GetMaxBytes(), l.maxBytes)
	l.maxInodesPerUser = cmp.Or(op.GetMaxInodesPerUser(), l.maxInodesPerUser)
	l.maxBytesPerUser = cmp.Or(op.GetMaxBytesPerUser(), l.maxBytesPerUser)
}

// othersLinks is from how many names on an inode gets none from others than its owner and root. They count for the owner, who may be
// unable to remove them: so they are no more than what others can write into a file that is everybody's.
const othersLinks = MaxContent / nameOverhead

func maxLinksBy(by *storepb.Caller, in *inode) uint32 {
	if by.GetUid() != 0 && by.GetUid() != in.uid {
		return othersLinks
	}
	return MaxLinks
}

// bytes is what an inode counts, without its names.
func (in *inode) bytes() int64 {
	size := inodeOverhead + len(in.content) + evidenceBytes(in.evidence)
	if len(in.xattrs) > 0 {
		size += xattrBytes(in.xattrs)
	}
	return int64(max(leastInode, size))
}

func evidenceBytes(evidence []string) (bytes int) {
	for _, piece := range evidence {
		bytes += len(piece)
	}
	return bytes
}

// bytes is what a name counts.
func (e *entry) bytes() int64 {
	size := int64(nameOverhead)
	if e.known != nil {
		size += knownBytes(len(e.known.Holder) + len(e.known.Invalid) + len(e.known.tag))
	}
	if e.maker != nil {
		size += int64(heirBytes * (1 + len(e.maker.heirs)))
	}
	return size
}

// knownBytes is what a name counts for the strings that it knows of its holder.
func knownBytes(strings int) int64 { return int64(max(0, strings-freeKnown)) }

// saidBytes is knownBytes of what somebody says of a content.
func saidBytes(says *storepb.Facts) int64 {
	return knownBytes(len(says.GetHolder()) + len(says.GetInvalid()) + len(says.GetTag()))
}

func (l *ledger) usageOf(uid uint32) *usage {
	if user, found := l.usedBy[uid]; found {
		return user
	}
	return new(usage)
}

// count adds to what counts for a user and for all.
func (l *ledger) count(uid uint32, inodes, bytes int64) {
	l.used.add(inodes, bytes)
	user, found := l.usedBy[uid]
	if !found {
		user = new(usage)
		l.usedBy[uid] = user
	}
	if user.add(inodes, bytes); *user == (usage{}) {
		delete(l.usedBy, uid)
	}
}

// roomForName is room for a new name, and an inode if it is the first one.
func (l *ledger) roomForName(by *storepb.Caller, owner uint32, inodes, bytes int64) storepb.Code {
	if bytes > smallBytes {
		return l.room(by, owner, inodes, bytes)
	}
	return l.roomIn(l.shareOf(owner), l.limits.unreserved(), by, owner, inodes, bytes)
}

// room tells whether what somebody wants to add for an owner fits: NO_SPACE, QUOTA if it is the owner's share that is used up.
// What adds nothing always fits. Root is bound by the limits for all together only.
func (l *ledger) room(by *storepb.Caller, owner uint32, inodes, bytes int64) storepb.Code {
	return l.roomIn(l.shareOf(owner).forContent(), l.limits.unreserved().forContent(), by, owner, inodes, bytes)
}

func (l *ledger) roomIn(share, unreserved usage, by *storepb.Caller, owner uint32, inodes, bytes int64) storepb.Code {
	if by.GetUid() == 0 {
		if l.used.exceeds(l.limits.whole(), inodes, bytes) {
			return storepb.Code_NO_SPACE
		}
		return storepb.Code_OK
	}
	if owner != 0 && l.usageOf(owner).exceeds(share, inodes, bytes) {
		return storepb.Code_QUOTA
	}
	if ordinary := l.ordinary(); ordinary.exceeds(unreserved, inodes, bytes) {
		return storepb.Code_NO_SPACE
	}
	return storepb.Code_OK
}

// refuse is the result of a request that a budget refuses. It names the budget and the settings that change it.
func (l *ledger) refuse(code storepb.Code, owner uint32) *storepb.Result {
	result := &storepb.Result{Code: code}
	switch code {
	case storepb.Code_QUOTA:
		used, share := l.usageOf(owner), l.shareOf(owner)
		result.Message = fmt.Sprintf("user %d uses %d of %d inodes and %d of %d bytes; see `lockfs quota list`, and change that with "+
			"`lockfs quota set --uid %d`, or for all users with --max-inodes-per-user and --max-bytes-per-user of the servers",
			owner, used.inodes, share.inodes, used.bytes, share.bytes, owner)
	case storepb.Code_NO_SPACE:
		whole := l.limits.whole()
		result.Message = fmt.Sprintf("all users together use %d of %d inodes and %d of %d bytes, parts of which are reserved; "+
			"change that with --max-inodes and --max-bytes of the servers", l.used.inodes, whole.inodes, l.used.bytes, whole.bytes)
	}
	return result
}

// exceeds tells whether what is used, with what is to be added, is more than a limit. Without the latter it may be.
func (u *usage) exceeds(limit usage, inodes, bytes int64) bool {
	return inodes > 0 && u.inodes+uint64(inodes) > limit.inodes || bytes > 0 && u.bytes+uint64(bytes) > limit.bytes
}

// freeBytes is how much a user may still use for contents.
func (l *ledger) freeBytes(uid uint32) uint64 {
	if uid == 0 {
		return l.used.bytesLeftOf(l.limits.whole())
	}
	ordinary := l.ordinary()
	return min(ordinary.bytesLeftOf(l.limits.unreserved().forContent()), l.usageOf(uid).bytesLeftOf(l.shareOf(uid).forContent()))
}

func (u *usage) bytesLeftOf(limit usage) uint64 { return limit.bytes - min(limit.bytes, u.bytes) }

// fsStats tells a user what is used, and what there may be.
func (l *ledger) fsStats(uid uint32) *storepb.FsStats {
	whole := l.limits.whole()
	return &storepb.FsStats{
		Inodes: l.used.inodes, MaxInodes: whole.inodes, Bytes: l.used.bytes, MaxBytes: whole.bytes,
		FreeBytes: l.freeBytes(uid),
	}
}

func xattrBytes(xattrs []*storepb.Xattr) int {
	total := 0
	for _, x := range xattrs {
		total += len(x.GetName()) + len(x.GetValue())
	}
	return total
}

// bytesByName is what an inode counts in the quota of a directory for each of its names. A file with many names counts the same whatever its
// content is, so that a write need not visit them. All names together count no less than the largest content.
func (in *inode) bytesByName() int64 {
	if in.manyNames {
		return leastInode
	}
	return in.bytes()
}

// mostLockNames is how many names a file may have that is a lock under any of them. Programs that lock by link(2) need two. It is not less
// than MaxContent/leastInode, see bytesByName.
const mostLockNames = 256
