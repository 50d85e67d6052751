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

// shown is what keeps a leader from showing a change, and from acknowledging it, while mounts may answer from leases as if it had
// not been (package lease), and what gives these.
type shown struct {
	table *lease.Table
	fsm   *raftstore.FSM
	clock *clock
	gives bool            // this node gives leases, when it leads
	term  func() ids.Term // raft's current term

	turning sync.Mutex // between leading and not

	mu    sync.Mutex
	waits map[ids.Index]lease.Pending // what the answers to commands wait for
}

// What is leased is little: what is large is read seldom, and would be kept by many.
const (
	mostLeasedContent = 4 << 10 // bytes
	mostLeasedEntries = 128
)

var errNotReady = errors.New("this node is not ready to lead in the present term")

func newShown(fsm *raftstore.FSM, clock *clock, gives bool, term func() ids.Term) *shown {
	s := &shown{table: lease.NewTable(), fsm: fsm, clock: clock, gives: gives, term: term, waits: make(map[ids.Index]lease.Pending)}
	fsm.OnApply(s.applied)
	return s
}

func monotonic() time.Duration { return readClocks().mono }

// begin is called when this node leads, and no lease of another's lasts any more.
func (s *shown) begin(term ids.Term) {
	s.turning.Lock()
	defer s.turning.Unlock()
	s.table.Begin(term)
}

// stay has leases given again in a term in which the table was paused, if this node still leads: else somebody ends it, or has.
func (s *shown) stay(term ids.Term, leads func() bool) {
	s.turning.Lock()
	defer s.turning.Unlock()
	if leads() {
		s.table.Resume(term)
	}
}

// resign has this node give no more leases in a term, and answers for how long those last that it has given in it; false: nobody knows.
func (s *shown) resign(term ids.Term) (lasts time.Duration, resigned bool) {
	return s.table.Resign(term, monotonic())
}

// end is called when this node leads no more.
func (s *shown) end() {
	s.turning.Lock()
	defer s.turning.Unlock()
	s.table.End()
}

// foretell has mounts drop what a command is about to change.
func (s *shown) foretell(op *storepb.Op) (over func()) {
	if mounts, _ := s.table.Held(); mounts == 0 && !s.gives {
		return func() {}
	}
	var inodes []ids.Inode
	s.fsm.View(func(ns *namespace.Namespace) { inodes = ns.Foreseen(op) })
	return s.table.Foretell(inodes)
}

// applied has mounts drop what a command has changed, and notes whom its answer waits for. A command that has changed nothing itself may
// have been refused because of any change, or be the repetition of one.
func (s *shown) applied(ns *namespace.Namespace) {
	if s.table.IsIdle() {
		return
	}
	touched, own := ns.Touched()
	s.table.Applied(ns.Index(), touched, monotonic())
	pending := s.table.All(ns.Index())
	if own {
		pending = s.table.Of(ns.Index(), touched)
	}
	if len(pending) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for index, old := range s.waits {
		if old.IsOver() {
			delete(s.waits, index) // nobody waits for its answer any more
		}
	}
	s.waits[ns.Index()] = pending
}

// settle waits until the result of a command may be told. A node may have been deposed and elected again since it decided to propose
// the command. Until it is ready in its new term, leases of the leader in between may last that its table does not know: then the outcome
// is unknown to the caller, whose retry waits for a leader that is ready.
func (s *shown) settle(ctx context.Context, index ids.Index) error {
	if s.table.Term() != s.term() {
		return errNotReady
	}
	s.mu.Lock()
	pending := s.waits[index]
	delete(s.waits, index)
	s.mu.Unlock()
	return s.table.Await(ctx, pending, monotonic)
}

// awaitAll waits until all may be shown that was applied until now.
func (s *shown) awaitAll(ctx context.Context) error {
	var index ids.Index
	s.fsm.View(func(ns *namespace.Namespace) { index = ns.Index() })
	return s.table.Await(ctx, s.table.All(index), monotonic)
}

// leased is a lease on an answer.
type leased struct {
	generation uint64        // 0: there is none
	lasts      time.Duration // at most; 0: as long as the mount's lease
}

// query answers once what it answers may be shown, with a lease for the session that wants one, if there is one (none: nobody wants it). That
// this node led was confirmed since the query came. leads tells whether it still does, which is looked at after the read: as long as a
// node leads, it has applied nothing that another leader waits with.
func (s *shown) query(ctx context.Context, leads func() bool, query *storepb.Query, wanted lease.Request) (*storepb.Result, leased, error) {
	var pending lease.Pending
	var given leased
	result, err := s.fsm.QueryAnd(query, func(ns *namespace.Namespace, result *storepb.Result) {
		inodes, keyed := namespace.Keys(query, result)
		if !keyed {
			pending = s.table.All(ns.Index())
			return
		}
		pending = s.table.Of(ns.Index(), inodes)
		if wanted.Session != 0 && s.gives {
			given = s.give(ns, wanted, &answered{query, result, inodes}, s.unchanged(ns, wanted.Holder, inodes, s.clock.Now()), monotonic())
		}
	})
	if err == nil && !leads() {
		err = errNotConfirmed
	}
	if err == nil {
		err = s.table.Await(ctx, pending, monotonic)
	}
	return result, given, err
}

// unchanged is for how long inodes must not have changed at a cluster time to be leased to a mount that asks about them: not for long if it
// asks often about all that have changed just now.
func (s *shown) unchanged(ns *namespace.Namespace, of lease.Holder, inodes []ids.Inode, now int64) time.Duration {
	unchanged := lease.Moment
	for _, ino := range inodes {
		if changed := ns.ChangedAt(ino); now-changed < int64(lease.Quiet) && !s.table.AsksOften(of, ino, changed) {
			unchanged = lease.Quiet
		}
	}
	return unchanged
}

// answered is a question with its answer and what that says something of.
type answered struct {
	query  *storepb.Query
	result *storepb.Result
	inodes []ids.Inode
}

// give leases an answer from a moment on if it is little, has not changed for so long, and no successor could forget it. It ends at the
// latest when lockfs itself is to do something to a name of an inode.
func (s *shown) give(ns *namespace.Namespace, to lease.Request, a *answered, unchanged, from time.Duration) leased {
	if !ns.MayLease() || !ns.SessionLive(to.Session) || !isLeased(a.query, a.result) {
		return leased{}
	}
	now := s.clock.Now()
	var given leased
	for _, ino := range a.inodes {
		settled, until := ns.Settled(ino, now-int64(unchanged))
		if !settled || until != 0 && until <= now {
			return leased{}
		}
		if left := time.Duration(until - now); until != 0 && (given.lasts == 0 || left < given.lasts) {
			given.lasts = left
		}
	}
	var ok bool
	if given.generation, ok = s.table.Grant(to, a.inodes, from); !ok {
		return leased{}
	}
	return given
}

// isLeased tells whether an answer is of a kind that is leased.
func isLeased(query *storepb.Query, result *storepb.Result) bool {
	switch query.GetQuery().(type) {
	case *storepb.Query_Lookup:
		return result.GetCode() == storepb.Code_OK || result.GetCode() == storepb.Code_NOT_FOUND
	case *storepb.Query_GetAttr, *storepb.Query_ReadDir, *storepb.Query_Read:
		isSmall := len(result.GetContent()) <= mostLeasedContent && len(result.GetEntries()) <= mostLeasedEntries
		return result.GetCode() == storepb.Code_OK && isSmall
	}
	return false
}
