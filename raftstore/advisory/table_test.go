package advisory

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"lockfs/raftstore/budget"
	"lockfs/raftstore/digest"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// history gives random commands to a table and to a naive one.
type history struct {
	t      require.TestingT
	draw   func(below int) int
	table  *Table
	plain  *naive
	now    int64
	seq    ids.Sequence
	asked  []*Wanted
	codes  map[storepb.Code]int
	shape  shape
	report func(format string, args ...any)
}

// shape is which locks meet: few or many owners, short or long ranges.
type shape struct{ files, sessions, owners, bytes, longest int }

var shapes = []shape{
	{files: 1, sessions: 2, owners: 3, bytes: 6, longest: 6},
	{files: 2, sessions: 2, owners: 4, bytes: 12, longest: 3},
	{files: 1, sessions: 3, owners: 6, bytes: 60, longest: 20},
	{files: 1, sessions: 1, owners: 30, bytes: 4, longest: 4},
	{files: 2, sessions: 3, owners: 12, bytes: 200, longest: 200},
	{files: 1, sessions: 1, owners: 5, bytes: 30, longest: 6},
	{files: 1, sessions: 2, owners: 8, bytes: 10, longest: 2},
}

func newHistory(t require.TestingT, draw func(int) int, s shape) *history {
	h := &history{
		t: t, draw: draw, table: New(digest.New()), plain: new(naive), now: 1, shape: s, codes: make(map[storepb.Code]int),
		report: func(string, ...any) {},
	}
	h.plain.passed = []int{passedRequests, 0, 1, 3, 8}[draw(5)]
	h.table.passed = h.plain.passed
	return h
}

func (h *history) often(percent int) bool { return h.draw(100) < percent }

func (h *history) session() ids.Session { return ids.Session(1 + h.draw(h.shape.sessions)) }

func (h *history) want() *Wanted {
	for _, w := range h.plain.queue {
		if w.interrupted != 0 && h.often(15) { // the call is made again
			again := Wanted{lock: w.lock, wait: true, byProcess: w.byProcess}
			again.seq = h.seq
			return &again
		}
	}
	if len(h.asked) > 0 && h.often(10) {
		again := *h.asked[len(h.asked)-1-h.draw(min(len(h.asked), 10))]
		again.seq = h.seq
		return &again
	}
	op := &storepb.TakeLock{
		Ino: uint64(1 + h.draw(h.shape.files)), Kind: storepb.LockKind_RECORD, Owner: uint64(1 + h.draw(h.shape.owners)),
		Wait: h.often(70), ByProcess: h.often(70), Pid: uint32(h.draw(3)), Start: uint64(h.draw(h.shape.bytes)), End: lastByte,
		Type: []storepb.LockType{
			storepb.LockType_UNLOCK, storepb.LockType_SHARED, storepb.LockType_SHARED, storepb.LockType_EXCLUSIVE, storepb.LockType_EXCLUSIVE,
		}[h.draw(5)],
	}
	if h.often(15) {
		op.Kind = storepb.LockKind_FLOCK
	}
	if !h.often(10) {
		op.End = op.GetStart() + uint64(h.draw(h.shape.longest))
	}
	want, valid := Want(h.session(), h.seq, budget.User{}, op)
	require.True(h.t, valid)
	h.asked = append(h.asked, want)
	return want
}

// step does one command in both tables and compares them.
func (h *history) step() {
	h.seq++
	h.now += []int64{0, 1, 1, int64(time.Second), int64(InterruptPatience)}[h.draw(5)]
	index := ids.Index(h.seq)
	h.table.Begin(index, h.now)
	h.plain.index, h.plain.now = index, h.now
	h.table.Expire()
	h.plain.expire()
	h.command()
	require.NoError(h.t, h.table.Check())
	h.requireSame()
	if h.often(5) {
		h.restore()
	}
}

func (h *history) command() {
	delay := []int64{0, 0, int64(time.Second), int64(3 * time.Second)}[h.draw(4)]
	switch session := h.session(); {
	case h.often(8):
		ino, kind, owner := ids.Inode(1+h.draw(h.shape.files)), kinds[h.draw(2)], ids.Owner(1+h.draw(h.shape.owners))
		h.report("drop %v %v %v of %v, delay %v", ino, kind, owner, session, delay)
		h.table.Drop(session, &storepb.DropLocks{Ino: uint64(ino), Kind: kind, Owners: []uint64{uint64(owner)}}, delay)
		h.plain.lose(func(a *lock) bool { return *a.place() == lock{ino: ino, kind: kind, session: session, owner: owner} }, delay)
	case h.often(2):
		h.report("drop all of %v, delay %v", session, delay)
		h.table.DropAll(session, delay)
		h.plain.lose(func(a *lock) bool { return a.session == session }, delay)
	case h.often(12) && len(h.plain.queue) > 0:
		w := h.plain.queue[h.draw(len(h.plain.queue))]
		if h.often(60) {
			h.report("interrupt %v of %v", w.seq, w.session)
			h.table.Interrupt(w.session, &storepb.InterruptLock{Seq: uint64(w.seq)})
			h.plain.interrupt(w.session, w.seq)
			return
		}
		h.report("cancel %v of %v", w.seq, w.session)
		h.table.Cancel(w.session, w.seq)
		h.plain.remove(func(other *waiter) bool { return other.session == w.session && other.seq == w.seq })
		h.plain.serve()
	default:
		want := h.want()
		h.report("take %+v", want)
		require.Equal(h.t, h.table.heldAgainst(&want.lock) != nil, h.plain.heldAgainst(&want.lock))
		code, _ := h.table.Take(want)
		require.Equal(h.t, h.plain.take(want), code)
		h.codes[code]++
	}
}

// place is the file and owner of a lock.
func (a *lock) place() *lock {
	return &lock{ino: a.ino, kind: a.kind, session: a.session, owner: a.owner}
}

// requireSame compares all locks and requests, with everything that is known of them.
func (h *history) requireSame() {
	held := make([]string, 0, len(h.plain.held))
	for _, a := range h.plain.held {
		held = append(held, fmt.Sprintf("%+v", a))
	}
	got := make([]string, 0, len(held))
	for _, a := range h.table.held.Items() {
		got = append(got, fmt.Sprintf("%+v", *a))
	}
	slices.Sort(held)
	slices.Sort(got)
	require.Equal(h.t, held, got)
	var queue, gotQueue []string
	for _, w := range h.plain.queue {
		queue = append(queue, fmt.Sprintf("%+v", *w))
	}
	for _, w := range h.table.waiters.Items() {
		gotQueue = append(gotQueue, fmt.Sprintf("%+v", *w))
	}
	slices.Sort(queue)
	slices.Sort(gotQueue)
	require.Equal(h.t, queue, gotQueue)
	for ino := range ids.Inode(h.shape.files) {
		h.requireSameOf(ino + 1)
	}
}

func (h *history) requireSameOf(ino ids.Inode) {
	held, waiting, latest, by := 0, 0, int64(-1), false
	for _, a := range h.plain.held {
		if a.ino != ino {
			continue
		}
		latest = max(latest, a.since)
		by = by || a.until == 0 && a.session == 1 && a.pid == 1
		if a.session != 1 {
			held++
		}
	}
	for _, w := range h.plain.queue {
		if w.ino != ino {
			continue
		}
		latest = max(latest, w.since)
		if w.interrupted == 0 {
			waiting++
		}
	}
	gotHeld, gotWaiting := h.table.Others(ino, 1)
	require.Equal(h.t, []int{held, waiting}, []int{gotHeld, gotWaiting})
	require.Equal(h.t, by, h.table.HeldBy(ino, 1, 1))
	require.Equal(h.t, latest >= 0, h.table.Locked(ino))
	require.Equal(h.t, latest >= 0, h.table.LockedSince(ino, latest))
	require.False(h.t, h.table.LockedSince(ino, latest+1))
}

// restore goes on with what a snapshot of the table has.
func (h *history) restore() {
	h.report("restore")
	d := digest.New()
	again := New(d)
	again.passed = h.table.passed
	h.table.Frozen().Each(func(m *storepb.AdvisoryLock) bool {
		again.Restore(proto.Clone(m).(*storepb.AdvisoryLock), "")
		return true
	})
	again.Begin(h.table.index, h.now)
	h.table = again
	require.NoError(h.t, again.Check())
	h.requireSame()
}

// TestTableAgreesWithNaive gives random histories to a table and to one without indexes: the same requests are granted in the same order.
func TestTableAgreesWithNaive(t *testing.T) {
	codes := make(map[storepb.Code]int)
	rapid.Check(t, func(t *rapid.T) {
		draw := rapid.IntRange(0, 1<<20)
		h := newHistory(t, func(below int) int { return draw.Draw(t, "n") % below }, rapid.SampledFrom(shapes).Draw(t, "shape"))
		h.report, h.codes = t.Logf, codes
		for range 1 + draw.Draw(t, "steps")%60 {
			h.step()
		}
	})
	t.Log(codes)
}

// TestLongHistoriesAgreeWithNaive is for what takes many owners to come about.
func TestLongHistoriesAgreeWithNaive(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	for i := range 60 * len(shapes) {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		h := newHistory(t, random.IntN, shapes[i%len(shapes)])
		for range 30 + random.IntN(150) {
			h.step()
		}
	}
}

// TestOneUserWaitsForFewRanges: a user's requests wait for a limited number of different ranges of a file, and any number for the same one.
func TestOneUserWaitsForFewRanges(t *testing.T) {
	c := &caller{t: t, table: New(digest.Restoring()), uid: 1000}
	c.take(ann, 0, lastByte)
	each(MostRanges, func(i uint64) { c.waitToShare(i+1, i, i) })
	c.ask(storepb.Code_NO_LOCKS, bob, free, free, storepb.LockType_SHARED, true)
	c.ask(storepb.Code_NO_LOCKS, bob, 0, 0, storepb.LockType_EXCLUSIVE, true)
	c.ask(storepb.Code_WOULD_BLOCK, bob, free, free, storepb.LockType_SHARED, false)
	each(MostRanges, func(i uint64) { c.waitToShare(bob+i, 0, 0) })
	c.uid = 1001
	c.waitToShare(bob, free, free)
	require.NoError(t, c.table.Check())
	c.release(ann, 0, 9)
	c.uid = 1000
	c.waitToShare(bob, free+1, free+1)
	require.NoError(t, c.table.Check())
}
