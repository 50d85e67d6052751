package raftstore

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime/debug"
	"sync"

	"github.com/hashicorp/raft"

	"lockfs/raftstore/codec"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
	"lockfs/raftstore/version"
)

var _ raft.ConfigurationStore = (*FSM)(nil)

// FSM applies raft's commands to a namespace and serves concurrent reads of it.
type FSM struct {
	self   string // id of this node
	fail   func(error)
	frozen chan *namespace.Snapshot // holds one

	versions version.Range      // of a cluster, known to this program
	raise    func(uint32) error // nil: not called

	mu         sync.RWMutex
	ns         *namespace.Namespace
	stopped    error     // an ApplyError, a DistrustedError, codec.ErrNewer or codec.ErrOlder; nil: it runs
	waiters    list.List // of *waiter, in the order of arrival
	waits      *sessionWaits
	removals   *removals
	applied    func(*namespace.Namespace) // may be nil
	configured func()                     // may be nil
	member     func(*storepb.Member)      // may be nil
	due        int64                      // last result of NextDue
	sooner     chan struct{}              // has an item when it has become sooner
}

// NewFSM continues from a state, for the node with this id. It calls fail, with its lock held, when it can
// apply no more; the node must then end.
func NewFSM(ns *namespace.Namespace, self string, fail func(error)) *FSM {
	f := &FSM{
		self: self, fail: fail, frozen: make(chan *namespace.Snapshot, 1), ns: ns, waits: newSessionWaits(ns), removals: newRemovals(),
		due: math.MaxInt64, sooner: make(chan struct{}, 1), versions: version.Own(),
	}
	f.wake()
	return f
}

// Versions sets the known versions of a cluster. raise is called before anything of a later version is
// applied; if it fails, none of it is applied. Call it before the first Apply and Restore.
func (f *FSM) Versions(known version.Range, raise func(version uint32) error) {
	f.versions, f.raise = known, raise
}

// Apply returns a *storepb.Result. If the state would differ from that of the other nodes, it returns an
// *ApplyError and applies no more.
func (f *FSM) Apply(entry *raft.Log) (answer any) {
	cmd, err := codec.DecodeCommand(entry.Data)
	if err == nil {
		err = codec.CheckKnown(entry.Data, cmd)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped != nil {
		return f.stopped
	}
	if err == nil {
		err = f.prepareFor(cmd)
	}
	if err != nil {
		stopped := applyError(entry, cmd, err)
		f.stop(stopped)
		return stopped
	}
	defer func() { // a panic leaves the namespace half changed
		if p := recover(); p != nil {
			stopped := applyError(entry, cmd, fmt.Errorf("panic: %v", p))
			stopped.Stack = debug.Stack()
			f.stop(stopped)
			answer = stopped
		}
	}()
	result := f.ns.Apply(ids.Index(entry.Index), cmd)
	if cmd.GetOp().GetFreezeState() != nil {
		f.freeze()
	}
	if m := cmd.GetOp().GetSetMember().GetMember(); m != nil {
		f.tellMember(f.ns.Member(m.GetId()))
	}
	if f.applied != nil {
		f.applied(f.ns)
	}
	f.removals.add(f.ns.Removed())
	f.wake()
	f.waits.applied(f.ns)
	return result
}

// prepareFor calls raise before a command raises the cluster's version. The caller holds the lock.
func (f *FSM) prepareFor(cmd *storepb.Command) error {
	raise := cmd.GetOp().GetSetVersion()
	if raise == nil || f.ns.MayRaise(raise.GetVersion()) != "" {
		return nil
	}
	return f.enter(raise.GetVersion())
}

// enter announces the next version of the state.
func (f *FSM) enter(to uint32) error {
	if to > f.versions.Newest { // an older state can be read, and the log continues from it
		return namespace.CheckVersion(to, f.versions)
	}
	if f.raise == nil {
		return nil
	}
	return f.raise(to)
}

// Query answers from the state of this node, which may be behind the cluster's. The error is the reason why
// it has stopped.
func (f *FSM) Query(query *storepb.Query) (*storepb.Result, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.stopped != nil {
		return nil, f.stopped
	}
	return f.query(query), nil
}

// OnApply sets a function to call after each command, before its effects can be read.
func (f *FSM) OnApply(applied func(*namespace.Namespace)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.applied = applied
}

// OnConfiguration sets a function to call after each committed change of raft's configuration, and after each
// received state.
func (f *FSM) OnConfiguration(changed func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.configured = changed
}

// OnMember sets a function to call with each member, and again whenever one is recorded. The state's lock is
// held.
func (f *FSM) OnMember(told func(*storepb.Member)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.member = told
	f.tellMembers()
}

func (f *FSM) tellMembers() {
	for _, m := range f.ns.Members() {
		f.tellMember(m)
	}
}

func (f *FSM) tellMember(m *storepb.Member) {
	if f.member != nil && m != nil {
		f.member(m)
	}
}

// StoreConfiguration implements raft.ConfigurationStore.
func (f *FSM) StoreConfiguration(uint64, raft.Configuration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reconfigured()
}

func (f *FSM) reconfigured() {
	if f.configured != nil {
		f.configured()
	}
}

// QueryAnd is Query, and calls look with the result before anything else is applied.
func (f *FSM) QueryAnd(query *storepb.Query, look func(*namespace.Namespace, *storepb.Result)) (*storepb.Result, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.stopped != nil {
		return nil, f.stopped
	}
	result := f.query(query)
	look(f.ns, result)
	return result, nil
}

// QuerySince answers a query if this node's state suffices. nil: not yet, or the query wants the newest
// state, or only the leader knows the visible state (namespace.Namespace.MayLease).
func (f *FSM) QuerySince(query *storepb.Query) *storepb.Result {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.stopped != nil || query.GetSince() == 0 || ids.Index(query.GetSince()) > f.ns.Index() || f.ns.MayLease() {
		return nil
	}
	return f.query(query)
}

func (f *FSM) query(query *storepb.Query) *storepb.Result {
	result := f.ns.Query(query)
	result.Index = uint64(f.ns.Index())
	return result
}

// View calls look with the namespace, unless this node has stopped. look must neither change nor keep it.
func (f *FSM) View(look func(*namespace.Namespace)) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.stopped == nil {
		look(f.ns)
	}
}

// State returns a copy of the whole state, in constant time; nil if this node has stopped.
func (f *FSM) State() *namespace.Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped != nil {
		return nil
	}
	return f.ns.Snapshot()
}

// Snapshot implements raft.FSM.
func (f *FSM) Snapshot() (raft.FSMSnapshot, error) {
	state := f.State()
	if state == nil {
		return nil, f.stopped // raft assumes more applied entries
	}
	return fsmSnapshot{state}, nil
}

// Restore implements raft.FSM. A damaged snapshot leaves the state unchanged. A snapshot of an unknown
// version stops this node.
func (f *FSM) Restore(from io.ReadCloser) error {
	defer func() { _ = from.Close() }()
	ns, err := namespace.Restore(from)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil && f.stopped == nil {
		err = f.enter(ns.Version())
	}
	if errors.Is(err, codec.ErrNewer) || errors.Is(err, codec.ErrOlder) {
		f.stop(err)
	}
	if f.stopped != nil {
		return f.stopped
	}
	if err != nil {
		return err
	}
	f.ns = ns
	f.tellMembers()
	f.reconfigured()
	f.wake()
	f.waits.restart(f.ns)
	return nil
}

// EndedWaits returns the waits of a session that ended after a command, and waits for such an end until ctx
// ends. If the ends are no longer known, or the question names no command, it returns all waiting lock
// requests. The error is the reason why this node has stopped.
func (f *FSM) EndedWaits(ctx context.Context, q *WaitsQuestion) (*Waits, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var asking *askingWaits
	for {
		if f.stopped != nil {
			return nil, f.stopped
		}
		if w := f.waits.answer(f.ns, q); w.ends(q) || ctx.Err() != nil {
			return w, nil
		}
		if asking == nil {
			asking = f.waits.begin(q)
			defer f.waits.end(asking)
		}
		f.mu.Unlock()
		select {
		case <-asking.news:
		case <-ctx.Done():
		}
		f.mu.Lock()
	}
}

// AwaitLock returns the state of a request, at once. The error is the reason why this node has stopped.
func (f *FSM) AwaitLock(query *storepb.AwaitLock) (*storepb.Result, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.stopped != nil {
		return nil, f.stopped
	}
	return f.ns.AwaitLock(query), nil
}

// freeze stores a copy of the state for the receiver of Frozen, in place of an earlier one. The caller holds
// the lock.
func (f *FSM) freeze() {
	select {
	case <-f.frozen:
	default:
	}
	f.frozen <- f.ns.Snapshot()
}

// Frozen delivers the state after the last command FreezeState. It has one receiver.
func (f *FSM) Frozen() <-chan *namespace.Snapshot { return f.frozen }

// waiter waits for a condition. The applying goroutine checks it, so no waiter wakes in vain.
type waiter struct {
	holds func(*namespace.Namespace) bool
	told  chan error // holds one
}

// WaitFor returns nil once a condition holds; it is checked after every command. It returns an error when ctx
// ends or this node stops.
func (f *FSM) WaitFor(ctx context.Context, holds func(*namespace.Namespace) bool) error {
	f.mu.Lock()
	if f.stopped != nil || holds(f.ns) {
		defer f.mu.Unlock()
		return f.stopped
	}
	w := &waiter{holds, make(chan error, 1)}
	place := f.waiters.PushBack(w)
	f.mu.Unlock()
	select {
	case err := <-w.told:
		return err
	case <-ctx.Done():
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiters.Remove(place) // if it is still there
	return ctx.Err()
}

// tellWaiters ends the waits with a true condition, or all if there is an error. The caller holds the lock.
func (f *FSM) tellWaiters(err error) {
	for place := f.waiters.Front(); place != nil; {
		w, next := place.Value.(*waiter), place.Next()
		if err != nil || w.holds(f.ns) {
			f.waiters.Remove(place)
			w.told <- err
		}
		place = next
	}
}

// wake wakes waiters, announces a sooner due time, and stops this node if it is distrusted. The caller holds
// the lock.
func (f *FSM) wake() {
	if alarm := f.ns.Distrusted(f.self); alarm != nil {
		f.stop(&DistrustedError{alarm})
	}
	f.tellWaiters(nil)
	due := f.ns.NextDue()
	if due < f.due {
		select {
		case f.sooner <- struct{}{}:
		default:
		}
	}
	f.due = due
}

// Sooner delivers an item when NextDue has become sooner since the last receive. It has one receiver.
func (f *FSM) Sooner() <-chan struct{} { return f.sooner }

// Removals returns the removals after a number in an epoch, and waits for one until ctx ends. For another
// epoch it returns only the present epoch and number.
func (f *FSM) Removals(ctx context.Context, epoch, after uint64) (found []namespace.Removal, newEpoch, last uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.removals
	for epoch == r.epoch && after == r.last && ctx.Err() == nil {
		if r.news == nil {
			r.news = make(chan struct{})
		}
		news := r.news
		f.mu.Unlock()
		select {
		case <-news:
		case <-ctx.Done():
		}
		f.mu.Lock()
	}
	if epoch == r.epoch && after <= r.last {
		found = r.since(after)
	}
	return found, r.epoch, r.last
}

// stop stops the state machine: it applies and answers nothing more. Only the first reason counts. The caller
// holds the lock.
func (f *FSM) stop(err error) {
	if f.stopped != nil {
		return
	}
	f.stopped = err
	f.tellWaiters(err)
	f.waits.wakeAll()
	f.fail(err)
}

type fsmSnapshot struct{ *namespace.Snapshot }

func (s fsmSnapshot) Persist(sink raft.SnapshotSink) error {
	if err := s.Write(sink); err != nil {
		_ = sink.Cancel()
		return err
	}
	return sink.Close()
}

func (fsmSnapshot) Release() {}
