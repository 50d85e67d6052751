package namespace

import (
	"cmp"
	"fmt"
	"math/bits"

	"lockfs/raftstore/digest"
	"lockfs/raftstore/storepb"
)

// usageTable counts inodes and bytes by user, and has the limits.
type usageTable struct {
	limits    limits
	used      usage             // by inodes and names, without orphans without a pin
	usedBy    map[uint32]*usage // the same, by uid of the owner
	forgotten uint64            // bytes of orphans without a pin
	reserve   reserve
	quotas    *digest.Map[uint32, *storepb.Quota] // of users, in place of a share
}

// Sizes, of which the sum is about a voter's memory. An inode counts at least leastInode. So a small lock can
// always be emptied, filled and renewed, even when all room is used.
const (
	inodeOverhead = 512     // of an inode, besides its content, target and extended attributes
	leastInode    = 1 << 10 // of an inode, with these
	nameOverhead  = 512     // of each name, with the name itself
	freeKnown     = 128     // bytes of facts a name may have without counting more
	heirBytes     = 64      // of each heir of a creator
)

// Default limits of bytes, which SetLimits changes.
const (
	DefaultMaxBytes = 256 << 20 // for all users together
	// A user other than root has a share of the inodes and bytes: one in so many. It has room for smallLocks,
	// but is at most half of all.
	defaultShare = 8
	// A part of the inodes and bytes is for root alone: one in so many.
	rootReserve = 64
	// A part of the other users' bytes is for small files: one in so many. Whatever users write into files,
	// there is room for locks, and for files that renew them.
	lockReserve = 16
)

// smallBytes is the size of a small inode with its names, as for a lock or a link to it.
const smallBytes = leastInode + 2*nameOverhead

// orphanBytes bounds the orphans without a pin, which count for no user.
const orphanBytes = 64 << 20

// usage is the use of one user, or of all.
type usage struct {
	inodes uint64
	bytes  uint64
}

func (u *usage) add(inodes, bytes int64) {
	u.inodes += uint64(inodes)
	u.bytes += uint64(bytes)
}

// limits are those of SetLimits; 0: not set.
type limits struct {
	maxInodes        uint64
	maxBytes         uint64
	maxInodesPerUser uint64
	maxBytesPerUser  uint64
}

func (l *limits) whole() usage {
	return usage{inodes: cmp.Or(l.maxInodes, DefaultMaxInodes), bytes: cmp.Or(l.maxBytes, DefaultMaxBytes)}
}

func (l *limits) share() usage {
	whole := l.whole()
	inodes := max(whole.inodes/defaultShare, min(smallLocks, whole.inodes/2))
	bytes := max(whole.bytes/defaultShare, min(smallLocks*smallBytes, whole.bytes/2))
	return usage{inodes: cmp.Or(l.maxInodesPerUser, inodes), bytes: cmp.Or(l.maxBytesPerUser, bytes)}
}

func (l *usageTable) shareOf(uid uint32) usage {
	share := l.limits.share()
	if q, found := l.quotas.Get(uid); found {
		share.inodes, share.bytes = cmp.Or(q.GetMaxInodes(), share.inodes), cmp.Or(q.GetMaxBytes(), share.bytes)
	}
	return share
}

// unreserved returns the limit for all users but root, without the common reserve.
func (l *limits) unreserved() usage {
	whole, reserved := l.whole(), l.reserved()
	return usage{
		inodes: whole.inodes - whole.inodes/rootReserve - reserved,
		bytes:  whole.bytes - whole.bytes/rootReserve - reserved*smallBytes,
	}
}

// forContent returns the part of a limit for contents larger than small.
func (u usage) forContent() usage {
	return usage{inodes: u.inodes, bytes: u.bytes - u.bytes/lockReserve}
}

func (l *limits) set(op *storepb.SetLimits) {
	l.maxInodes = cmp.Or(op.GetMaxInodes(), l.maxInodes)
	l.maxBytes = cmp.Or(op.GetMaxBytes(), l.maxBytes)
	l.maxInodesPerUser = cmp.Or(op.GetMaxInodesPerUser(), l.maxInodesPerUser)
	l.maxBytesPerUser = cmp.Or(op.GetMaxBytesPerUser(), l.maxBytesPerUser)
}

// othersLinks is the number of names of an inode from which only its owner and root may add one. All names
// count for the owner, who may be unable to remove them. So other users can add no more than they can write
// into a world-writable file.
const othersLinks = MaxContent / nameOverhead

func maxLinksBy(by *storepb.Caller, in *inode) uint32 {
	if by.GetUid() != 0 && by.GetUid() != in.uid {
		return othersLinks
	}
	return MaxLinks
}

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

func (e *entry) bytes() int64 {
	size := int64(nameOverhead)
	if e.known != nil {
		size += knownBytes(len(e.known.Holder) + len(e.known.Invalid) + len(e.known.tag))
	}
	if e.creator != nil {
		size += int64(heirBytes * (1 + len(e.creator.heirs)))
	}
	return size
}

// knownBytes returns the size of the strings in a name's facts.
func knownBytes(strings int) int64 { return int64(max(0, strings-freeKnown)) }

// saidBytes is knownBytes for the facts of a command.
func saidBytes(says *storepb.Facts) int64 {
	return knownBytes(len(says.GetHolder()) + len(says.GetInvalid()) + len(says.GetTag()))
}

func (l *usageTable) usageOf(uid uint32) *usage {
	if user, found := l.usedBy[uid]; found {
		return user
	}
	return new(usage)
}

func (l *usageTable) count(uid uint32, inodes, bytes int64) {
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

// roomForName checks the room for a new name, and for an inode with its first name.
func (l *usageTable) roomForName(by *storepb.Caller, owner uint32, inodes, bytes int64) storepb.Code {
	if bytes > smallBytes {
		return l.room(by, owner, inodes, bytes)
	}
	return l.roomIn(l.shareOf(owner), l.limits.unreserved(), by, owner, inodes, bytes)
}

// room checks the room for an addition: NO_SPACE, or QUOTA if the owner's share is used up. Adding nothing is
// always possible. Only the limits for all users together bind root.
func (l *usageTable) room(by *storepb.Caller, owner uint32, inodes, bytes int64) storepb.Code {
	return l.roomIn(l.shareOf(owner).forContent(), l.limits.unreserved().forContent(), by, owner, inodes, bytes)
}

func (l *usageTable) roomIn(share, unreserved usage, by *storepb.Caller, owner uint32, inodes, bytes int64) storepb.Code {
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

// refuse returns the result for a refused addition. It names the budget and the settings that change it.
func (l *usageTable) refuse(code storepb.Code, owner uint32) *storepb.Result {
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

// exceeds reports whether an addition exceeds a limit. Without one, the use may exceed it.
func (u *usage) exceeds(limit usage, inodes, bytes int64) bool {
	return inodes > 0 && u.inodes+uint64(inodes) > limit.inodes || bytes > 0 && u.bytes+uint64(bytes) > limit.bytes
}

func (l *usageTable) freeBytes(uid uint32) uint64 {
	if uid == 0 {
		return l.used.bytesLeftOf(l.limits.whole())
	}
	ordinary := l.ordinary()
	return min(ordinary.bytesLeftOf(l.limits.unreserved().forContent()), l.usageOf(uid).bytesLeftOf(l.shareOf(uid).forContent()))
}

func (u *usage) bytesLeftOf(limit usage) uint64 { return limit.bytes - min(limit.bytes, u.bytes) }

func (l *usageTable) fsStats(uid uint32) *storepb.FsStats {
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

// bytesByName is the size of an inode in a directory's quota, for each name. The names of a file that had
// many share its content, so all together count at least the content. Beyond maxLockNames each counts the
// same whatever the content, so a write need not visit them.
func (in *inode) bytesByName() int64 {
	switch {
	case !in.manyNames || in.nlink == 0:
		return in.bytes()
	case in.nlink > maxLockNames:
		return leastInode
	}
	sharers := bits.Len32(in.nlink) - 1 // a power of two, so few changes of the number visit the names
	return max(leastInode, in.bytes()>>sharers)
}

// maxLockNames is the most names of a file with a lock under any of them. Locking by link(2) needs two. It
// is at least MaxContent/leastInode, see bytesByName.
const maxLockNames = 256
