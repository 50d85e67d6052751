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
	CallsPerUser uint64 // calls in progress; more of them wait until one of these ends
	WaitsPerUser uint64 // for locks, and reads of the control directory other than of lists, and as many open files there; then ENOLCK, EAGAIN or EMFILE
}

// Default limits, and for how many users there is room. The last share is root's.
const (
	DefaultCallsPerUser = 256
	DefaultWaitsPerUser = 16 << 10
	userShares          = 8

	// controlBytesPerUser is how much the mount keeps of files in .lockfs that are open.
	controlBytesPerUser = 16 << 20
)

// The flags of `lockfs mount`, `lockfs server` and `lockfs dev` that change them.
const (
	CallsFlag = "max-calls-per-user"
	WaitsFlag = "max-waits-per-user"
)

// Budgets count the calls, waits and open control files of a mount's users.
type Budgets struct {
	calls, waits, files, bytes *budget.Pool
}

// NewBudgets returns budgets of which nothing is used.
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
