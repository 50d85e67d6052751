package cluster

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/lease"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/ids"
)

const (
	// renewalTick is the interval between renewals. All leases due at one tick share its quorum round,
	// and come again together.
	renewalTick = 50 * time.Millisecond
	// earlierTicks is how many ticks too early a lease may be renewed, if more than tickSlack fewer
	// others are due then: mounts that found a new leader together should spread out.
	earlierTicks = 2
	tickSlack    = 16
)

// leaseRenewals are requests of mounts, kept until their leases have to be extended (package lease), a
// revocation is to be sent, or the mount or the leadership is gone. No goroutine waits for a request:
// there may be ten thousand.
type leaseRenewals struct {
	ctx           context.Context // ends when the node is closed
	table         *lease.Table
	leadership    *leadership
	readIndex     *readIndex
	identityCheck *identityCheck

	mu   sync.Mutex
	kept map[lease.Holder]*renewal
	due  map[int64]map[*renewal]bool // of the kept ones, by tick
}

// renewal is one of them.
type renewal struct {
	of         lease.Holder
	generation uint64
	came       time.Duration
	left       time.Duration   // of the lease when the request was sent, on the mount's clock: it may know less than was granted
	ctx        context.Context // ends when the caller has gone
	answer     func(*clusterpb.LeaseReply, error)
	tick       int64       // at which it is due; 0: none
	unwatch    func() bool // stops watching ctx; nil: not watched
}

func newLeaseRenewals(ctx context.Context, table *lease.Table, leadership *leadership, readIndex *readIndex, identityCheck *identityCheck) *leaseRenewals {
	k := &leaseRenewals{
		ctx: ctx, table: table, leadership: leadership, readIndex: readIndex, identityCheck: identityCheck,
		kept: make(map[lease.Holder]*renewal), due: make(map[int64]map[*renewal]bool),
	}
	go k.notify()
	return k
}

// request handles a lease request and calls answer once, now or later. Neither waits. The error is a
// *rpc.RefusedError.
func (k *leaseRenewals) request(ctx context.Context, req *clusterpb.LeaseRequest, answer func(*clusterpb.LeaseReply, error)) {
	r := &renewal{
		of:         lease.Holder{Session: ids.Session(req.GetSession()), Client: req.GetClient()},
		generation: req.GetGeneration(), came: monotonic(), left: time.Duration(req.GetLeft()),
		ctx: ctx, answer: answer,
	}
	if k.leadership.leads() {
		k.take(r, req)
		return
	}
	go func() {
		if term, leader := k.leadership.await(ctx); term == 0 {
			answer(notLeaderReply(leader), nil)
			return
		}
		k.take(r, req)
	}()
}

// take is request while this node leads.
func (k *leaseRenewals) take(r *renewal, req *clusterpb.LeaseRequest) {
	if _, err := k.identityCheck.checkSession(rpc.CallerOf(r.ctx), r.of.Session); err != nil {
		r.answer(nil, err)
		return
	}
	k.table.NoteContact(r.of)
	if req.GetRelease() {
		k.table.Release(r.of, r.generation)
		r.answer(new(clusterpb.LeaseReply), nil)
		return
	}
	k.table.Acknowledge(r.of, r.generation, req.GetDropped())
	k.keep(r)
}

// keep keeps a request unless there is a revocation to send now. It replaces an earlier request of the
// same mount.
func (k *leaseRenewals) keep(r *renewal) {
	k.mu.Lock()
	before := k.kept[r.of]
	if before != nil {
		k.remove(before)
	}
	k.kept[r.of] = r // before it is checked: notify finds anything later
	k.mu.Unlock()
	if before != nil {
		before.answer(droppedReply(), nil)
	}
	inodes, _, due, known := k.table.Revocations(r.of, r.generation)
	switch {
	case k.ctx.Err() != nil:
		k.answer(r, droppedReply())
	case !known || len(inodes) > 0:
		k.answer(r, k.reply(r))
	default:
		k.schedule(r, due)
	}
}

// remove forgets a request. The caller holds the mutex.
func (k *leaseRenewals) remove(r *renewal) {
	delete(k.kept, r.of)
	delete(k.due[r.tick], r)
	if r.unwatch != nil {
		r.unwatch()
	}
}

// schedule renews a lease at a time, or a little earlier, and before the mount's lease ends.
func (k *leaseRenewals) schedule(r *renewal, due time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kept[r.of] != r {
		return
	}
	now := monotonic()
	due = min(due, r.came+r.left-lease.Slack)
	next := int64(now/renewalTick) + 1
	tick := max(int64(due/renewalTick), next)
	for earlier, end := tick-1, max(tick-earlierTicks, next); earlier >= end; earlier-- {
		if len(k.due[earlier])+tickSlack < len(k.due[tick]) {
			tick = earlier
		}
	}
	if k.due[tick] == nil {
		k.due[tick] = make(map[*renewal]bool)
		time.AfterFunc(time.Duration(tick)*renewalTick-now, func() { k.renew(tick) })
	}
	k.due[tick][r], r.tick = true, tick
	r.unwatch = context.AfterFunc(r.ctx, func() { k.answer(r, droppedReply()) })
}

// renew extends the leases that are due at a tick, except those with a revocation.
func (k *leaseRenewals) renew(tick int64) {
	k.mu.Lock()
	due := k.due[tick]
	delete(k.due, tick)
	for r := range due {
		r.tick = 0
	}
	k.mu.Unlock()
	if len(due) == 0 {
		return
	}
	term, leader := k.leadership.await(k.ctx)
	began := monotonic()
	confirmed := term != 0 && k.readIndex.confirm(k.ctx) == nil && k.readIndex.ownReport().term == term
	for r := range due {
		switch {
		case !k.keeps(r) || k.ctx.Err() != nil: // no grant without a caller
			k.answer(r, droppedReply())
		case term == 0:
			k.answer(r, notLeaderReply(leader))
		case confirmed && k.table.Extend(r.of, r.generation, began):
			reply := k.reply(r)
			reply.Extended, reply.Held = true, int64(began-r.came)
			k.answer(r, reply)
		default:
			k.answer(r, k.reply(r))
		}
	}
}

// keeps reports whether a request is still kept and its caller is there.
func (k *leaseRenewals) keeps(r *renewal) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.kept[r.of] == r && r.ctx.Err() == nil
}

// notify sends revocations and lost leases to their mounts. It answers all requests when this node no
// longer leads, and at the end.
func (k *leaseRenewals) notify() {
	for {
		changed := k.leadership.change()
		if k.leadership.term() == 0 {
			k.closeAll(notLeaderReply(""))
		}
		select {
		case <-changed:
		case <-k.table.News():
			for _, of := range k.table.NotifiedHolders() {
				k.mu.Lock()
				r := k.kept[of]
				k.mu.Unlock()
				if r != nil {
					k.answer(r, k.reply(r))
				}
			}
		case <-k.ctx.Done():
			k.closeAll(droppedReply())
			return
		}
	}
}

// reply returns the present state of a lease.
func (k *leaseRenewals) reply(r *renewal) *clusterpb.LeaseReply {
	inodes, number, _, known := k.table.Revocations(r.of, r.generation)
	reply := &clusterpb.LeaseReply{Known: known, Number: number}
	for _, ino := range inodes {
		reply.Drop = append(reply.Drop, uint64(ino))
	}
	return reply
}

// answer answers a request if it is still kept.
func (k *leaseRenewals) answer(r *renewal, reply *clusterpb.LeaseReply) {
	k.mu.Lock()
	isKept := k.kept[r.of] == r
	if isKept {
		k.remove(r)
	}
	k.mu.Unlock()
	if isKept {
		r.answer(reply, nil)
	}
}

// closeAll gives all kept requests the same answer.
func (k *leaseRenewals) closeAll(reply *clusterpb.LeaseReply) {
	k.mu.Lock()
	all := slices.Collect(maps.Values(k.kept))
	k.mu.Unlock()
	for _, r := range all {
		k.answer(r, reply)
	}
}

// notLeaderReply is the answer of a follower; an empty address: it knows no leader.
func notLeaderReply(leader string) *clusterpb.LeaseReply {
	return &clusterpb.LeaseReply{Outcome: clusterpb.Outcome_NOT_LEADER, LeaderAddress: leader}
}

// droppedReply answers a request that is replaced, abandoned, or too late because this node ends.
func droppedReply() *clusterpb.LeaseReply {
	return &clusterpb.LeaseReply{Outcome: clusterpb.Outcome_NOT_DONE}
}
