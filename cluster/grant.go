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

// leaseGate is what keeps a leader from showing a change, and from acknowledging it, while mounts may answer from leases as if it had
// not been (package lease), and what gives these.
type leaseGate struct {
	table  *lease.Table
	fsm    *raftstore.FSM
	clock  *clock
	grants bool            // this node gives leases, when it leads
	term   func() ids.Term // raft's current term

	transition sync.Mutex // between leading and not

	mu      sync.Mutex
	pending map[ids.Index]lease.Pending // what the answers to commands wait for
}

// What is leased is little: what is large is read seldom, and would be kept by many.
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

// start is called when this node leads, and no lease of another's lasts any more.
func (g *leaseGate) start(term ids.Term) {
	g.transition.Lock()
	defer g.transition.Unlock()
	g.table.Begin(term)
}

// resume has leases given again in a term in which the table was paused, if this node still leads: else somebody ends it, or has.
func (g *leaseGate) resume(term ids.Term, leads func() bool) {
	g.transition.Lock()
	defer g.transition.Unlock()
	if leads() {
		g.table.Resume(term)
	}
}

// stop has this node give no more leases in a term, and answers for how long those last that it has given in it; false: nobody knows.
func (g *leaseGate) stop(term ids.Term) (lasts time.Duration, resigned bool) {
	return g.table.Stop(term, monotonic())
}

// end is called when this node leads no more.
func (g *leaseGate) end() {
	g.transition.Lock()
	defer g.transition.Unlock()
	g.table.End()
}

// revokeAhead has mounts drop what a command is about to change.
func (g *leaseGate) revokeAhead(op *storepb.Op) (over func()) {
	if mounts, _ := g.table.Held(); mounts == 0 && !g.grants {
		return func() {}
	}
	var inodes []ids.Inode
	g.fsm.View(func(ns *namespace.Namespace) { inodes = ns.Foreseen(op) })
	return g.table.RevokeAhead(inodes)
}

// onApply has mounts drop what a command has changed, and notes whom its answer waits for. A command that has changed nothing itself may
// have been refused because of any change, or be the repetition of one.
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
	if len(pending) == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for index, old := range g.pending {
		if old.IsOver() {
			delete(g.pending, index) // nobody waits for its answer any more
		}
	}
	g.pending[ns.Index()] = pending
}

// waitRevoked waits until the result of a command may be told. A node may have been deposed and elected again since it decided to propose
// the command. Until it is ready in its new term, leases of the leader in between may last that its table does not know: then the outcome
// is unknown to the caller, whose retry waits for a leader that is ready.
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

// waitAllRevoked waits until all may be shown that was applied until now.
func (g *leaseGate) waitAllRevoked(ctx context.Context) error {
	var index ids.Index
	g.fsm.View(func(ns *namespace.Namespace) { index = ns.Index() })
	return g.table.Await(ctx, g.table.All(index), monotonic)
}

// grantedLease is a lease on an answer.
type grantedLease struct {
	generation uint64        // 0: there is none
	lasts      time.Duration // at most; 0: as long as the mount's lease
}

// query answers once what it answers may be shown, with a lease for the session that wants one, if there is one (none: nobody wants it). That
// this node led was confirmed since the query came. leads tells whether it still does, which is looked at after the read: as long as a
// node leads, it has applied nothing that another leader waits with.
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

// quietPeriod is for how long inodes must not have changed at a cluster time to be leased to a mount that asks about them: not for long if it
// asks often about all that have changed just now.
func (g *leaseGate) quietPeriod(ns *namespace.Namespace, of lease.Holder, inodes []ids.Inode, now int64) time.Duration {
	unchanged := lease.MinAge
	for _, ino := range inodes {
		if changed := ns.ChangedAt(ino); now-changed < int64(lease.QuietPeriod) && !g.table.ReadsOften(of, ino, changed) {
			unchanged = lease.QuietPeriod
		}
	}
	return unchanged
}

// leasableAnswer is a question with its answer and what that says something of.
type leasableAnswer struct {
	query  *storepb.Query
	result *storepb.Result
	inodes []ids.Inode
}

// grant leases an answer from a moment on if it is little, has not changed for so long, and no successor could forget it. It ends at the
// latest when lockfs itself is to do something to a name of an inode.
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

// isLeased tells whether an answer is of a kind that is leased.
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
