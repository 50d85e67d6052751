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

// FSM lets raft apply commands to a namespace that others read meanwhile.
type FSM struct {
	self   string // id of the node whose it is
	fail   func(error)
	frozen chan *namespace.Snapshot // holds one

	versions version.Range      // of a cluster, that this program knows
	raise    func(uint32) error // nil: nobody is told

	mu         sync.RWMutex
	ns         *namespace.Namespace
	stopped    error     // an ApplyError, a DistrustedError, codec.ErrNewer or codec.ErrOlder; nil: it goes on
	waiters    list.List // of *waiter, in the order in which they came
	waits      *sessionWaits
	removals   *removals
	applied    func(*namespace.Namespace) // may be nil
	configured func()                     // may be nil
	member     func(*storepb.Member)      // may be nil
	due        int64                      // what NextDue was
	sooner     chan struct{}              // has something when it has become sooner
}

// NewFSM goes on from a state, for the node with that id. fail is called when it can apply no more, with its lock held; the node is
// to end then.
func NewFSM(ns *namespace.Namespace, self string, fail func(error)) *FSM {
	f := &FSM{
		self: self, fail: fail, frozen: make(chan *namespace.Snapshot, 1), ns: ns, waits: newSessionWaits(ns), removals: newRemovals(),
		due: math.MaxInt64, sooner: make(chan struct{}, 1), versions: version.Own(),
	}
	f.wake()
	return f
}

// Versions sets which versions of a cluster are known, and who is told before anything of a later one is applied: what he does not
// take is not applied. It comes before the first Apply and Restore.
func (f *FSM) Versions(known version.Range, raise func(version uint32) error) {
	f.versions, f.raise = known, raise
}

// Apply answers a *storepb.Result, or an *ApplyError if this node applies no more: its state would differ from the others' if
// it went on.
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
	defer func() { // a panic has left the namespace as it was in the middle of it
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

// prepareFor has what is to be told before a command raises the cluster's version told; the caller holds the lock.
func (f *FSM) prepareFor(cmd *storepb.Command) error {
	raise := cmd.GetOp().GetSetVersion()
	if raise == nil || f.ns.MayRaise(raise.GetVersion()) != "" {
		return nil
	}
	return f.enter(raise.GetVersion())
}

// enter has it told that the state will be of a version.
func (f *FSM) enter(to uint32) error {
	if to > f.versions.Newest { // what is older can be read, and the log goes on from there
		return namespace.CheckVersion(to, f.versions)
	}
	if f.raise == nil {
		return nil
	}
	return f.raise(to)
}

// Query answers from the state of this node, which may be behind the cluster's. The error is why it answers no more.
func (f *FSM) Query(query *storepb.Query) (*storepb.Result, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.stopped != nil {
		return nil, f.stopped
	}
	return f.query(query), nil
}

// OnApply has applied be called after each command, before anybody can read what it did.
func (f *FSM) OnApply(applied func(*namespace.Namespace)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.applied = applied
}

// OnConfiguration has changed be called after each change of raft's configuration that is committed, and when there may have been one
// in a state that was received.
func (f *FSM) OnConfiguration(changed func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.configured = changed
}

// OnMember has told be called with each member, and again whenever one is recorded. It is called with the state's lock held.
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

// StoreConfiguration is part of raft.ConfigurationStore.
func (f *FSM) StoreConfiguration(uint64, raft.Configuration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reconfigured()
}

// reconfigured tells who wants to know of configurations; the caller holds the lock.
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

// QuerySince answers as soon as this node's state will do for a query; nil: it does not yet, or the newest is wanted, or only the
// leader knows what may be shown (namespace.Namespace.MayLease).
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

// View calls look with the namespace, which look must not change or keep, unless this node applies no more.
func (f *FSM) View(look func(*namespace.Namespace)) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.stopped == nil {
		look(f.ns)
	}
}

// State is a copy of the whole state, in constant time; nil if this node applies no more.
func (f *FSM) State() *namespace.Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped != nil {
		return nil
	}
	return f.ns.Snapshot()
}

// Snapshot is part of raft.FSM.
func (f *FSM) Snapshot() (raft.FSMSnapshot, error) {
	state := f.State()
	if state == nil {
		return nil, f.stopped // raft believes that it has applied more
	}
	return fsmSnapshot{state}, nil
}

// Restore is part of raft.FSM. The state stays as it is when the snapshot is damaged. One of another version stops this node.
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

// EndedWaits returns the waits of a session that ended after a command, and waits for such an end until ctx ends. If the ends are not known any
// more, or the question is about no command, it returns all requests for locks that wait. The error is why this node answers no more.
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

// AwaitLock returns the state of a request, at once. The error is why this node answers no more.
func (f *FSM) AwaitLock(query *storepb.AwaitLock) (*storepb.Result, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.stopped != nil {
		return nil, f.stopped
	}
	return f.ns.AwaitLock(query), nil
}

// freeze keeps the state as it is now for whoever receives it, in place of an earlier one; the caller holds the lock.
func (f *FSM) freeze() {
	select {
	case <-f.frozen:
	default:
	}
	f.frozen <- f.ns.Snapshot()
}

// Frozen delivers the state as it was after the last command FreezeState. It has one receiver.
func (f *FSM) Frozen() <-chan *namespace.Snapshot { return f.frozen }

// waiter waits for a condition, which is looked at by who applies commands: nobody is woken by what does not concern him.
type waiter struct {
	holds func(*namespace.Namespace) bool
	told  chan error // holds one
}

// WaitFor returns once a condition holds, which is looked at after every command, the reason why ctx ended, or why this node applies no more.
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

// tellWaiters ends the wait of those whose condition holds, or of all, as there is an error; the caller holds the lock.
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

// wake tells those who wait for an index, or for time to pass, and stops this node if it is not trusted any more; the caller holds
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

// Sooner delivers something when NextDue has become sooner since it was received from last. It has one receiver.
func (f *FSM) Sooner() <-chan struct{} { return f.sooner }

// Removals answers what was removed after a number in an epoch, and waits for that until ctx ends. With
// another epoch it answers nothing but where to go on.
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

// stop has the state machine do and answer nothing more; the caller holds the lock. Only the first reason counts.
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
