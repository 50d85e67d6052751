package namespace

import (
	"lockfs/raftstore/budget"
	"lockfs/raftstore/storepb"
)

// A part of the inodes and bytes is a common reserve for small locks: small files, directories and links. A
// user with fewer than smallLocks of them can create more when other users have filled the rest. Each host
// has a part of the reserve. So root of one host, which can act as many users, leaves room for users of other
// hosts. An inode from the reserve counts there until its removal.
const (
	smallLocks = 256
	// commonReserve is one part in so many of the inodes and bytes.
	commonReserve = 16
	// hostReserve is the part of the reserve for one host: one in so many, and at least one lock.
	hostReserve = 4
)

// reserve counts the inodes in the common reserve, by host.
type reserve struct {
	used   uint64
	byHost budget.Counts[string]
}

func (r *reserve) count(host internedString, by int64) {
	if host != (internedString{}) {
		r.used += uint64(by)
		r.byHost.Add(host.String(), by)
	}
}

func (l *limits) reserved() uint64 {
	whole := l.whole()
	return min(whole.inodes/commonReserve, whole.bytes/commonReserve/smallBytes)
}

func (l *limits) reservedPerHost() uint64 { return max(1, l.reserved()/hostReserve) }

// ordinary returns the use without inodes of the common reserve.
func (l *usageTable) ordinary() usage {
	return usage{inodes: l.used.inodes - l.reserve.used, bytes: l.used.bytes - min(l.used.bytes, l.reserve.used*smallBytes)}
}

// roomForName returns nil if there is room for a new name, and for its inode if the name is the first. If the
// room is in the common reserve, the inode counts there from then on.
func (t *tree) roomForName(by *storepb.Caller, in *inode, inodes, bytes int64) *storepb.Result {
	code := t.usage.roomForName(by, in.payer(), inodes, bytes)
	switch {
	case code == storepb.Code_OK:
		return nil
	case code != storepb.Code_NO_SPACE || !t.mayReserve(by, in, inodes, bytes):
		return t.usage.refuse(code, in.payer())
	}
	in.reserve = intern(by.GetHost())
	return nil
}

func (t *tree) mayReserve(by *storepb.Caller, in *inode, inodes, bytes int64) bool {
	l := &t.usage
	isSmall := bytes <= smallBytes
	if inodes == 0 {
		isSmall = in.bytes()+int64(in.nlink)*nameOverhead+bytes <= smallBytes
	}
	if by.GetUid() == 0 || by.GetUid() != in.uid || by.GetHost() == "" || !isSmall ||
		l.usageOf(in.payer()).exceeds(usage{inodes: smallLocks, bytes: smallLocks * smallBytes}, inodes, bytes) {
		return false
	}
	if in.reserve != (internedString{}) {
		return true // it counts there with two names
	}
	return l.reserve.used < l.limits.reserved() && l.reserve.byHost.Used(by.GetHost()) < l.limits.reservedPerHost()
}
