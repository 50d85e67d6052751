package namespace

import (
	"cmp"

	"lockfs/raftstore/budget"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Budgets, as far as no SetLimits command has said anything else.
const (
	// DefaultMaxLocksPerUser is how many flock and fcntl locks, with requests that wait, a user of a host may have.
	DefaultMaxLocksPerUser = 16 << 10
	// DefaultMaxLocksPerFile is how many of them a user may have in one file, on all hosts.
	DefaultMaxLocksPerFile = 16 << 10
	// DefaultMaxSessionsPerHost is how many sessions a host may have that have not ended.
	DefaultMaxSessionsPerHost = 256
)

const (
	// hostShares is for how many users a host has room, as many locks as each may have. One share is for root.
	hostShares = 8
	// listedUses bounds how many users or hosts of each budget ListQuotas answers.
	listedUses = 100
)

// budgets are those of a SetLimits command that no ledger has; 0: it has said nothing.
type budgets struct{ locksPerUser, locksPerFile, sessionsPerHost uint64 }

func (b *budgets) set(op *storepb.SetLimits) {
	b.locksPerUser = cmp.Or(op.GetMaxLocksPerUser(), b.locksPerUser)
	b.locksPerFile = cmp.Or(op.GetMaxLocksPerFile(), b.locksPerFile)
	b.sessionsPerHost = cmp.Or(op.GetMaxSessionsPerHost(), b.sessionsPerHost)
}

const recordLocks = "flock and fcntl locks"

func (b *budgets) ofUser() budget.Limit {
	return budget.Limit{
		Budget: recordLocks, Of: "user and host", Setting: "--max-locks-per-user of the servers",
		Most: cmp.Or(b.locksPerUser, DefaultMaxLocksPerUser),
	}
}

// ofHost leaves a share to root.
func (b *budgets) ofHost(uid uint32) budget.Limit {
	limit := b.ofUser()
	limit.Of = "host"
	if uid == 0 {
		limit.Most *= hostShares
	} else {
		limit.Most *= hostShares - 1
	}
	return limit
}

func (b *budgets) ofFile() budget.Limit {
	return budget.Limit{
		Budget: recordLocks, Of: "user and file", Setting: "--max-locks-per-file of the servers",
		Most: cmp.Or(b.locksPerFile, DefaultMaxLocksPerFile),
	}
}

func (b *budgets) ofSessions() budget.Limit {
	return budget.Limit{
		Budget: "sessions", Of: "host", Setting: "--max-sessions-per-host of the servers",
		Most: cmp.Or(b.sessionsPerHost, DefaultMaxSessionsPerHost),
	}
}

// roomForLock returns nil if a user may have one more lock or request in a file. Root is bound by the limit of its host only.
func (ts *tables) roomForLock(by budget.User, ino ids.Inode) *budget.ExceededError {
	ofUser, ofHost, ofFile := ts.locks.Used(by, ino)
	if limit := ts.budgets.ofUser(); by.UID != 0 && ofUser >= limit.Most {
		return limit.Exceeded(by.String())
	}
	if limit := ts.budgets.ofFile(); by.UID != 0 && ofFile >= limit.Most {
		return limit.Exceeded(budget.User{UID: by.UID}.String())
	}
	if limit := ts.budgets.ofHost(by.UID); ofHost >= limit.Most {
		return limit.Exceeded("host " + by.Host)
	}
	return nil
}

// roomForSession returns nil if a host may open one more session.
func (ts *tables) roomForSession(name string) *budget.ExceededError {
	limit := ts.budgets.ofSessions()
	if h, known := ts.hosts.byName.Get(name); known && uint64(h.sessions) >= limit.Most {
		return limit.Exceeded("host " + name)
	}
	return nil
}
