package namespace

import (
	"cmp"

	"lockfs/raftstore/advisory"
	"lockfs/raftstore/budget"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Default budgets, which SetLimits changes.
const (
	// DefaultMaxLocksPerUser limits the flock and fcntl locks and waiting requests of a user of a host.
	DefaultMaxLocksPerUser = 16 << 10
	// DefaultMaxLocksPerFile limits those of a user in one file, on all hosts.
	DefaultMaxLocksPerFile = 16 << 10
	// DefaultMaxSessionsPerHost limits the live sessions of a host.
	DefaultMaxSessionsPerHost = 256
)

const (
	// hostShares is the limit of a host, in limits of a user. One share is for root.
	hostShares = 8
	// listedUses bounds the users or hosts of each budget in an answer to ListQuotas.
	listedUses = 100
)

// budgets are the settings of SetLimits outside the ledgers; 0: not set.
type budgets struct{ locksPerUser, locksPerFile, sessionsPerHost uint64 }

func (b *budgets) set(op *storepb.SetLimits) {
	b.locksPerUser = cmp.Or(op.GetMaxLocksPerUser(), b.locksPerUser)
	b.locksPerFile = cmp.Or(op.GetMaxLocksPerFile(), b.locksPerFile)
	b.sessionsPerHost = cmp.Or(op.GetMaxSessionsPerHost(), b.sessionsPerHost)
}

const kernelLocks = "flock and fcntl locks"

const shownInList = "`lockfs quota list`"

func (b *budgets) ofUser() budget.Limit {
	return budget.Limit{
		Budget: kernelLocks, Shown: shownInList, Of: "user and host", Setting: "--max-locks-per-user of the servers",
		Most: cmp.Or(b.locksPerUser, DefaultMaxLocksPerUser),
	}
}

// ofHost returns the limit of a host, for other users than root without root's share.
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
		Budget: kernelLocks, Shown: shownInList, Of: "user and file", Setting: "--max-locks-per-file of the servers",
		Most: cmp.Or(b.locksPerFile, DefaultMaxLocksPerFile),
	}
}

func (b *budgets) ofRanges() budget.Limit {
	return budget.Limit{Budget: "ranges with waiting fcntl requests", Of: "user and file", Most: advisory.MostRanges}
}

func (b *budgets) ofSessions() budget.Limit {
	return budget.Limit{
		Budget: "sessions", Shown: shownInList, Of: "host", Setting: "--max-sessions-per-host of the servers",
		Most: cmp.Or(b.sessionsPerHost, DefaultMaxSessionsPerHost),
	}
}

// roomForLock returns nil if a user may have one more lock or request in a file. Only the limit of its host
// binds root.
func (ts *state) roomForLock(by budget.User, ino ids.Inode) *budget.ExceededError {
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

func (ts *state) roomForSession(name string) *budget.ExceededError {
	limit := ts.budgets.ofSessions()
	if h, known := ts.hosts.byName.Get(name); known && uint64(h.sessions) >= limit.Most {
		return limit.Exceeded("host " + name)
	}
	return nil
}

// listBudgets returns the largest uses of each budget.
func (ts *state) listBudgets() (uses []*storepb.BudgetUse) {
	add := func(limit budget.Limit, used uint64, of *storepb.BudgetUse) {
		of.Budget, of.Setting, of.Used, of.Most = limit.Budget, limit.Setting, used, limit.Most
		uses = append(uses, of)
	}
	ts.eachShare(func(uid uint32, used, share usage) {
		inodes := budget.Limit{Budget: "inodes", Setting: "--max-inodes-per-user of the servers, or lockfs quota set", Most: share.inodes}
		bytes := budget.Limit{Budget: "bytes", Setting: "--max-bytes-per-user of the servers, or lockfs quota set", Most: share.bytes}
		add(inodes, used.inodes, &storepb.BudgetUse{Uid: &uid})
		add(bytes, used.bytes, &storepb.BudgetUse{Uid: &uid})
	})
	for _, use := range ts.tree.usage.reserve.byHost.Largest(listedUses, cmp.Compare[string]) {
		limit := budget.Limit{Budget: "small locks of the common reserve", Most: ts.tree.usage.limits.reservedPerHost()}
		add(limit, use.Used, &storepb.BudgetUse{Host: use.Key})
	}
	for _, use := range ts.locks.LargestUsers(listedUses) {
		limit := ts.budgets.ofUser()
		if use.Key.UID == 0 {
			limit = ts.budgets.ofHost(0)
		}
		add(limit, use.Used, &storepb.BudgetUse{Host: use.Key.Host, Uid: &use.Key.UID})
	}
	for _, use := range ts.locks.LargestHosts(listedUses) {
		add(ts.budgets.ofHost(0), use.Used, &storepb.BudgetUse{Host: use.Key})
	}
	for _, use := range ts.locks.LargestInFiles(listedUses) {
		of := &storepb.BudgetUse{Uid: &use.Key.UID}
		if e := ts.tree.nameOf(use.Key.Ino); e != nil && use.Key.UID != 0 {
			of.Path = []byte(ts.tree.path(e))
			add(ts.budgets.ofFile(), use.Used, of)
		}
	}
	var sessions budget.Counts[string]
	ts.hosts.byName.Scan(func(name string, h *host) bool {
		sessions.Add(name, int64(h.sessions))
		return true
	})
	for _, use := range sessions.Largest(listedUses, cmp.Compare[string]) {
		add(ts.budgets.ofSessions(), use.Used, &storepb.BudgetUse{Host: use.Key})
	}
	return uses
}

// eachShare visits the users with the most bytes, without root, which has no share.
func (ts *state) eachShare(visit func(uid uint32, used, share usage)) {
	var bytes budget.Counts[uint32]
	for uid, used := range ts.tree.usage.usedBy {
		if uid != 0 {
			bytes.Add(uid, int64(used.bytes))
		}
	}
	for _, use := range bytes.Largest(listedUses, cmp.Compare[uint32]) {
		visit(use.Key, *ts.tree.usage.usageOf(use.Key), ts.tree.usage.shareOf(use.Key))
	}
}
