package fusefs

import (
	"cmp"

	"lockfs/fusefs/control"
	"lockfs/fusefs/serve"
	"lockfs/raftstore/budget"
	"lockfs/raftstore/hostinfo"
)

// Limits are how much a user of a mount may use at a time; 0: the default.
type Limits struct {
	CallsPerUser uint64 // calls in progress; a further call waits until one of them ends
	WaitsPerUser uint64 // for locks and events, and open control files; then ENOLCK, EAGAIN or EMFILE
}

// Default limits, and the number of users with room. The last share is root's.
const (
	DefaultCallsPerUser = 256
	DefaultWaitsPerUser = 16 << 10
	userShares          = 8

	// controlBytesPerUser limits the kept bytes of open files in .lockfs.
	controlBytesPerUser = 16 << 20
)

// The flags of `lockfs mount`, `lockfs server` and `lockfs dev` for these limits.
const (
	CallsFlag = "max-calls-per-user"
	WaitsFlag = "max-waits-per-user"
)

// Budgets count the calls, waits and open control files of a mount's users.
type Budgets struct {
	calls, waits, files, bytes *budget.Pool
}

// NewBudgets returns unused budgets.
func NewBudgets(l Limits) *Budgets {
	return &Budgets{
		calls: newPool("calls in progress", CallsFlag, cmp.Or(l.CallsPerUser, DefaultCallsPerUser)),
		waits: newPool("waits", WaitsFlag, cmp.Or(l.WaitsPerUser, DefaultWaitsPerUser)),
		files: newPool("open control files", WaitsFlag, cmp.Or(l.WaitsPerUser, DefaultWaitsPerUser)),
		bytes: newPool("bytes of open control files", "", controlBytesPerUser),
	}
}

func newPool(what, flag string, each uint64) *budget.Pool {
	limit := budget.Limit{Budget: what, Of: "user of the mount", Most: each}
	if flag != "" {
		limit.Setting = "--" + flag
	}
	all := limit
	all.Of, all.Most = "mount", userShares*each
	return budget.NewPool(limit, all, each)
}

// Pools returns the budgets.
func (b *Budgets) Pools() []*budget.Pool { return []*budget.Pool{b.calls, b.waits, b.files, b.bytes} }

func (b *Budgets) ofControl() control.Budgets { return control.Budgets{Files: b.files, Bytes: b.bytes} }

func (b *Budgets) ofServer() serve.Budgets {
	return serve.Budgets{Calls: b.calls, Waits: b.waits, UserOf: func(uid uint32) budget.User { return budget.User{UID: hostinfo.BudgetUID(uid)} }}
}
