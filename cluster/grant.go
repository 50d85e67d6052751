package cluster

import (
	"context"
	"errors"
	"sync"
	"time"

	"lockfs/cluster/lease"
	"lockfs/raftstore"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// leaseGate grants leases, and holds back a change and its acknowledgement while mounts may still answer
// from leases granted before it (package lease).
type leaseGate struct {
	table  *lease.Table
	fsm    *raftstore.FSM
	clock  *clock
	grants bool            // this node grants leases when it leads
	term   func() ids.Term // raft's current term

	transition sync.Mutex // serializes changes between leading and not

	mu      sync.Mutex
	pending map[ids.Index]lease.Pending // revocations that the replies to commands wait for
	order   []ids.Index                 // of these, and of some whose reply was sent
}

// Only small answers are leased: large ones are read seldom, and many mounts would keep them.
const (
	maxLeasedContent = 4 << 10 // bytes
	maxLeasedEntries = 128
)

var errNotReady = errors.New("this node is not ready to lead in the present term")

func newLeaseGate(fsm *raftstore.FSM, clock *clock, gives bool, term func() ids.Term) *leaseGate {
	s := &leaseGate{table: lease.NewTable(), fsm: fsm, clock: clock, grants: gives, term: term, pending: make(map[ids.Index]lease.Pending)}
	fsm.OnApply(s.onApply)
	return s
}

func monotonic() time.Duration { return readClocks().mono }

// start begins to grant leases: this node leads, and no lease of another leader lasts.
func (g *leaseGate) start(term ids.Term) {
	g.transition.Lock()
	defer g.transition.Unlock()
	g.table.Begin(term)
}

// resume grants leases again in a paused term, if this node still leads.
func (g *leaseGate) resume(term ids.Term, leads func() bool) {
	g.transition.Lock()
	defer g.transition.Unlock()
	if leads() {
		g.table.Resume(term)
	}
}

// stop ends granting in a term, and returns how long its leases last; false: this node does not know.
func (g *leaseGate) stop(term ids.Term) (lasts time.Duration, resigned bool) {
	return g.table.Stop(term, monotonic())
}

// end is called when this node no longer leads.
func (g *leaseGate) end() {
	g.transition.Lock()
	defer g.transition.Unlock()
	g.table.End()
}

// revokeAhead asks mounts to drop what a command is about to change.
func (g *leaseGate) revokeAhead(op *storepb.Op) (over func()) {
	if mounts, _ := g.table.Held(); mounts == 0 && !g.grants {
		return func() {}
	}
	var inodes []ids.Inode
	g.fsm.View(func(ns *namespace.Namespace) { inodes = ns.Foreseen(op) })
	return g.table.RevokeAhead(inodes)
}

// onApply asks mounts to drop what a command has changed, and records the revocations that its reply
// waits for. A command without a change of its own may have been refused because of any change, or repeat
// one.
func (g *leaseGate) onApply(ns *namespace.Namespace) {
	if g.table.IsIdle() {
		return
	}
	touched, own := ns.Touched()
	g.table.Applied(ns.Index(), touched, monotonic())
	pending := g.table.All(ns.Index())
	if own {
		pending = g.table.Of(ns.Index(), touched)
	}
	if pending.IsOver() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.order) > 0 {
		if old, found := g.pending[g.order[0]]; found && !old.IsOver() {
			break
		}
		delete(g.pending, g.order[0]) // its reply was sent, or never will be
		g.order = g.order[1:]
	}
	g.pending[ns.Index()] = pending
	g.order = append(g.order, ns.Index())
}

// waitRevoked waits until the result of a command may be acknowledged. A node may have been deposed and
// elected again since it proposed the command. Until it is ready in the new term, the leader in between
// may have granted leases unknown to this table. Then the outcome is unknown, and the caller's retry
// waits for a ready leader.
func (g *leaseGate) waitRevoked(ctx context.Context, index ids.Index) error {
	if g.table.Term() != g.term() {
		return errNotReady
	}
	g.mu.Lock()
	pending := g.pending[index]
	delete(g.pending, index)
	g.mu.Unlock()
	return g.table.Await(ctx, pending, monotonic)
}

// waitAllRevoked waits until all applied changes may be shown.
func (g *leaseGate) waitAllRevoked(ctx context.Context) error {
	var index ids.Index
	g.fsm.View(func(ns *namespace.Namespace) { index = ns.Index() })
	return g.table.Await(ctx, g.table.All(index), monotonic)
}

// grantedLease is a lease on an answer.
type grantedLease struct {
	generation uint64        // 0: none
	lasts      time.Duration // at most; 0: as long as the mount's lease
}

// query answers once the answer may be shown, with a lease if wanted names a session and one can be
// granted. The leadership was confirmed after the query arrived. leads is checked after the read: while a
// node leads, it has applied nothing that another leader holds back.
func (g *leaseGate) query(ctx context.Context, leads func() bool, query *storepb.Query, wanted lease.Request) (*storepb.Result, grantedLease, error) {
	var pending lease.Pending
	var given grantedLease
	result, err := g.fsm.QueryAnd(query, func(ns *namespace.Namespace, result *storepb.Result) {
		inodes, keyed := namespace.Keys(query, result)
		if !keyed {
			pending = g.table.All(ns.Index())
			return
		}
		pending = g.table.Of(ns.Index(), inodes)
		if wanted.Session != 0 && g.grants {
			given = g.grant(ns, wanted, &leasableAnswer{query, result, inodes}, g.quietPeriod(ns, wanted.Holder, inodes, g.clock.Now()), monotonic())
		}
	})
	if err == nil && !leads() {
		err = errNoQuorum
	}
	if err == nil {
		err = g.table.Await(ctx, pending, monotonic)
	}
	return result, given, err
}

// quietPeriod returns how long inodes must not have changed before a lease on them: a short time for a
// mount that reads all of them often.
func (g *leaseGate) quietPeriod(ns *namespace.Namespace, of lease.Holder, inodes []ids.Inode, now int64) time.Duration {
	unchanged := lease.MinAge
	for _, ino := range inodes {
		if changed := ns.ChangedAt(ino); now-changed < int64(lease.QuietPeriod) && !g.table.ReadsOften(of, ino, changed) {
			unchanged = lease.QuietPeriod
		}
	}
	return unchanged
}

// leasableAnswer is a query with its answer and the inodes behind the answer.
type leasableAnswer struct {
	query  *storepb.Query
	result *storepb.Result
	inodes []ids.Inode
}

// grant grants a lease on a small answer whose inodes have not changed for some time, unless a successor
// could forget a change. The lease ends before lockfs itself changes a name of an inode.
func (g *leaseGate) grant(ns *namespace.Namespace, to lease.Request, a *leasableAnswer, unchanged, from time.Duration) grantedLease {
	if !ns.MayLease() || !ns.SessionLive(to.Session) || !isLeased(a.query, a.result) {
		return grantedLease{}
	}
	now := g.clock.Now()
	var given grantedLease
	for _, ino := range a.inodes {
		settled, until := ns.Settled(ino, now-int64(unchanged))
		if !settled || until != 0 && until <= now {
			return grantedLease{}
		}
		if left := time.Duration(until - now); until != 0 && (given.lasts == 0 || left < given.lasts) {
			given.lasts = left
		}
	}
	var ok bool
	if given.generation, ok = g.table.Grant(to, a.inodes, from); !ok {
		return grantedLease{}
	}
	return given
}

// isLeased reports whether answers of this kind are leased.
func isLeased(query *storepb.Query, result *storepb.Result) bool {
	switch query.GetQuery().(type) {
	case *storepb.Query_Lookup:
		return result.GetCode() == storepb.Code_OK || result.GetCode() == storepb.Code_NOT_FOUND
	case *storepb.Query_GetAttr, *storepb.Query_ReadDir, *storepb.Query_Read:
		isSmall := len(result.GetContent()) <= maxLeasedContent && len(result.GetEntries()) <= maxLeasedEntries
		return result.GetCode() == storepb.Code_OK && isSmall
	}
	return false
}
