package namespace

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"lockfs/raftstore/advisory"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// cells is how many pieces the locks of the model can tell apart: eight bytes and the rest of a file.
const cells = 9

// lockModel is advisory locks as the manual pages describe them, byte by byte.
type lockModel struct {
	now      int64
	index    uint64
	delay    int64
	sessions map[uint64]*lockModelSession
	owners   map[modelOwner][cells]storepb.LockType
	delayed  []*lockLeft
	queue    []*modelRequest // in order

	locksPerUser, locksPerFile uint64
}

type modelOwner struct {
	ino     uint64
	kind    storepb.LockKind
	session uint64
	owner   uint64
}

// lockLeft is what an owner has lost, and nobody gets yet.
type lockLeft struct {
	modelOwner
	has   [cells]storepb.LockType
	until int64
}

type modelRequest struct {
	modelOwner
	seq, position uint64
	at            [cells]bool
	to            storepb.LockType
	byProcess     bool
	interrupted   int64
}

type lockModelSession struct {
	started int64
	acked   uint64
	ended   uint64 // index; 0: it lives
	endedAt int64
	replies map[uint64]*storepb.Result
}

func newLockModel() *lockModel {
	return &lockModel{
		delay: int64(DefaultLockDelay), sessions: map[uint64]*lockModelSession{}, owners: map[modelOwner][cells]storepb.LockType{},
		locksPerUser: DefaultMaxLocksPerUser, locksPerFile: DefaultMaxLocksPerFile,
	}
}

func conflicting(a, b storepb.LockType) bool {
	return a != nothing && b != nothing && (a == exclusive || b == exclusive)
}

func (m *lockModel) has(o modelOwner, cell int) storepb.LockType { return m.owners[o][cell] }

func (m *lockModel) set(o modelOwner, at [cells]bool, to storepb.LockType) {
	has := m.owners[o]
	for cell := range cells {
		if at[cell] {
			has[cell] = to
		}
	}
	m.owners[o] = has
}

// conflicts tells whether anybody but the owner has what excludes a lock of a byte.
func (m *lockModel) conflicts(o modelOwner, cell int, to storepb.LockType) bool {
	for other := range m.owners {
		if other != o && other.ino == o.ino && other.kind == o.kind && conflicting(m.has(other, cell), to) {
			return true
		}
	}
	for _, left := range m.delayed {
		if left.ino == o.ino && left.kind == o.kind && conflicting(left.has[cell], to) {
			return true
		}
	}
	return false
}

func (m *lockModel) anyConflict(r *modelRequest) bool {
	for cell, at := range r.at {
		if at && m.conflicts(r.modelOwner, cell, r.to) {
			return true
		}
	}
	return false
}

// meets tells whether two requests could not both be granted.
func (r *modelRequest) meets(other *modelRequest) bool {
	if r.ino != other.ino || r.kind != other.kind || r.modelOwner == other.modelOwner || !conflicting(r.to, other.to) {
		return false
	}
	for cell := range cells {
		if r.at[cell] && other.at[cell] {
			return true
		}
	}
	return false
}

// stuck tells whether a request cannot become a lock before an owner lets go.
func (m *lockModel) stuck(r *modelRequest, behind modelOwner) bool {
	for cell, at := range r.at {
		if at && conflicting(m.has(behind, cell), r.to) {
			return true
		}
	}
	for _, earlier := range m.queue {
		if earlier.position < r.position && earlier.interrupted == 0 && earlier.modelOwner != behind && earlier.meets(r) &&
			m.stuck(earlier, behind) {
			return true
		}
	}
	return false
}

// inFront lists the earlier requests that a request has to wait for.
func (m *lockModel) inFront(r *modelRequest) (front []*modelRequest) {
	for _, earlier := range m.queue {
		if earlier.position < r.position && earlier.interrupted == 0 && earlier.meets(r) && !m.stuck(earlier, r.modelOwner) {
			front = append(front, earlier)
		}
	}
	return front
}

// serve grants the first request that can be, again and again, in all files.
func (m *lockModel) serve() {
	for i := 0; i < len(m.queue); i++ {
		r := m.queue[i]
		if r.interrupted == 0 && !m.anyConflict(r) && len(m.inFront(r)) == 0 {
			m.queue = slices.Delete(m.queue, i, i+1)
			m.set(r.modelOwner, r.at, r.to)
			i = -1
		}
	}
}

func (m *lockModel) take(cmd *storepb.Command, op *storepb.TakeLock) storepb.Code {
	if op.GetSession() != cmd.GetSession() {
		return storepb.Code_SESSION_LOST
	}
	r := requestOf(cmd.GetSession(), cmd.GetSeq(), op)
	r.position = m.index
	if (r.to != nothing || m.splits(r)) && m.isFull(r.modelOwner) {
		return storepb.Code_NO_LOCKS
	}
	if r.to == nothing {
		m.set(r.modelOwner, r.at, nothing)
		return storepb.Code_OK
	}
	again := slices.IndexFunc(m.queue, func(other *modelRequest) bool {
		return other.modelOwner == r.modelOwner && other.interrupted != 0 && other.at == r.at && other.to == r.to
	})
	if again >= 0 {
		r.position = m.queue[again].position
		m.queue = slices.Delete(m.queue, again, again+1)
	}
	if had := m.has(r.modelOwner, 0); r.kind == storepb.LockKind_FLOCK && had != nothing && had != r.to {
		m.set(r.modelOwner, r.at, nothing)
		m.serve()
	}
	switch {
	case !m.anyConflict(r) && (!op.GetWait() || len(m.inFront(r)) == 0):
		m.set(r.modelOwner, r.at, r.to)
		return storepb.Code_OK
	case !op.GetWait():
		return storepb.Code_WOULD_BLOCK
	}
	m.queue = append(m.queue, r)
	slices.SortFunc(m.queue, func(a, b *modelRequest) int { return int(a.position) - int(b.position) })
	if m.isDeadlock(r) {
		m.queue = slices.DeleteFunc(m.queue, func(other *modelRequest) bool { return other == r })
		return storepb.Code_DEADLOCK
	}
	return storepb.Code_WAITING
}

// eachRange visits the locks of an owner: cells of one type in a row.
func (m *lockModel) eachRange(o modelOwner, visit func(from, to int)) {
	has, from := m.owners[o], 0
	for cell := 1; cell <= cells; cell++ {
		if cell == cells || has[cell] != has[from] {
			if has[from] != nothing {
				visit(from, cell-1)
			}
			from = cell
		}
	}
}

// splits reports whether a release has one lock become two.
func (m *lockModel) splits(r *modelRequest) (is bool) {
	first := slices.Index(r.at[:], true)
	last := cells - 1 - slices.Index(slices.Collect(backwards(r.at)), true)
	m.eachRange(r.modelOwner, func(from, to int) { is = is || from < first && last < to })
	return is
}

// isFull reports whether the user of an owner, or the owner's host, may have no more locks and requests.
func (m *lockModel) isFull(o modelOwner) bool {
	uid, ofUser, ofHost, ofFile := lockUID(o.owner), uint64(0), uint64(0), uint64(0)
	count := func(other modelOwner) {
		sameHost, sameUser := lockHost(other.session) == lockHost(o.session), lockUID(other.owner) == uid
		if sameHost {
			ofHost++
		}
		if sameHost && sameUser {
			ofUser++
		}
		if sameUser && other.ino == o.ino {
			ofFile++
		}
	}
	for other := range m.owners {
		m.eachRange(other, func(int, int) { count(other) })
	}
	for _, r := range m.queue {
		count(r.modelOwner)
	}
	if uid == 0 {
		return ofHost >= 8*m.locksPerUser
	}
	return ofUser >= m.locksPerUser || ofHost >= 7*m.locksPerUser || ofFile >= m.locksPerFile
}

// isDeadlock looks for a way from a request back to its owner, all along processes with one request.
func (m *lockModel) isDeadlock(r *modelRequest) bool {
	type process struct{ session, owner uint64 }
	of := func(o modelOwner) process { return process{o.session, o.owner} }
	only := func(p process) (found *modelRequest) {
		for _, other := range m.queue {
			if of(other.modelOwner) != p || other.kind != storepb.LockKind_RECORD || other.interrupted != 0 {
				continue
			}
			if found != nil || !other.byProcess {
				return nil
			}
			found = other
		}
		return found
	}
	seen := map[process]bool{}
	var reaches func(from *modelRequest) bool
	reaches = func(from *modelRequest) bool {
		var to []process
		for other := range m.owners {
			held := &modelRequest{modelOwner: other}
			for cell := range cells {
				held.at, held.to = [cells]bool{}, m.has(other, cell)
				held.at[cell] = true
				if held.meets(from) {
					to = append(to, of(other))
				}
			}
		}
		for _, earlier := range m.inFront(from) {
			to = append(to, of(earlier.modelOwner))
		}
		for _, p := range to {
			if p == of(r.modelOwner) {
				return true
			}
			if seen[p] {
				continue
			}
			seen[p] = true
			if next := only(p); next != nil && reaches(next) {
				return true
			}
		}
		return false
	}
	return only(of(r.modelOwner)) == r && reaches(r)
}

func (m *lockModel) drop(session uint64, op *storepb.DropLocks) {
	for _, owner := range op.GetOwners() {
		o := modelOwner{op.GetIno(), op.GetKind(), session, owner}
		if op.GetLost() {
			m.leave(o, m.delay)
		}
		delete(m.owners, o)
		m.queue = slices.DeleteFunc(m.queue, func(r *modelRequest) bool { return r.modelOwner == o })
	}
}

func (m *lockModel) dropSession(session uint64, delay int64) {
	for o := range m.owners {
		if o.session != session {
			continue
		}
		m.leave(o, delay)
		delete(m.owners, o)
	}
	m.queue = slices.DeleteFunc(m.queue, func(r *modelRequest) bool { return r.session == session })
}

func (m *lockModel) leave(o modelOwner, delay int64) {
	if has := m.owners[o]; delay > 0 && has != [cells]storepb.LockType{} {
		m.delayed = append(m.delayed, &lockLeft{modelOwner: o, has: has, until: m.now + delay})
	}
}

func (m *lockModel) interrupt(session uint64, op *storepb.InterruptLock) storepb.Code {
	for _, r := range m.queue {
		if r.session == session && r.seq == op.GetSeq() {
			r.interrupted = m.now
			return storepb.Code_WAITING
		}
	}
	return m.whetherHeld(requestOf(session, op.GetSeq(), &storepb.TakeLock{
		Ino: op.GetIno(), Kind: op.GetKind(), Owner: op.GetOwner(), Type: op.GetType(), Start: op.GetStart(), End: op.GetEnd(),
	}))
}

func (m *lockModel) whetherHeld(r *modelRequest) storepb.Code {
	for cell, at := range r.at {
		if at && m.has(r.modelOwner, cell) < r.to {
			return storepb.Code_NOT_FOUND
		}
	}
	return storepb.Code_OK
}

func (m *lockModel) await(r *modelRequest) storepb.Code {
	for _, there := range m.queue {
		if there.session == r.session && there.seq == r.seq {
			if there.interrupted != 0 {
				return storepb.Code_NOT_FOUND
			}
			return storepb.Code_WAITING
		}
	}
	return m.whetherHeld(r)
}

// cancel ends a wait, and keeps a command from coming.
func (m *lockModel) cancel(session, seq uint64) storepb.Code {
	s := m.sessions[session]
	switch {
	case s == nil:
		return storepb.Code_SESSION_FORGOTTEN
	case seq <= s.acked:
		return storepb.Code_DUPLICATE
	}
	s.replies[seq] = &storepb.Result{Code: storepb.Code_CANCELLED}
	m.queue = slices.DeleteFunc(m.queue, func(r *modelRequest) bool { return r.session == session && r.seq == seq })
	return storepb.Code_OK
}

// apply answers the code that a command is to have.
func (m *lockModel) apply(index uint64, cmd *storepb.Command) storepb.Code {
	m.index, m.now = index, max(m.now, cmd.GetTime())
	m.forgetSessions()
	m.expire()
	code := m.applyOnce(cmd)
	m.serve()
	return code
}

func (m *lockModel) applyOnce(cmd *storepb.Command) storepb.Code {
	op, s := cmd.GetOp(), m.sessions[cmd.GetSession()]
	switch {
	case op.GetOpenSession() != nil:
		return m.open(cmd.GetSession(), op.GetOpenSession().GetStarted())
	case op.GetCancel() != nil:
		return m.cancel(cmd.GetSession(), op.GetCancel().GetSeq())
	case cmd.GetSession() == 0:
		return m.operate(cmd)
	case s == nil && op.GetCloseSession() != nil:
		return storepb.Code_SESSION_UNKNOWN
	case s == nil:
		return storepb.Code_SESSION_FORGOTTEN
	case op.GetCloseSession() != nil:
		delay := int64(0)
		if op.GetCloseSession().GetInUse() {
			delay = m.delay
		}
		m.dropSession(cmd.GetSession(), delay)
		delete(m.sessions, cmd.GetSession())
		return storepb.Code_OK
	case cmd.GetSeq() <= s.acked:
		return storepb.Code_DUPLICATE
	case s.replies[cmd.GetSeq()] != nil:
		return s.replies[cmd.GetSeq()].GetCode()
	case s.ended != 0:
		return storepb.Code_SESSION_UNKNOWN
	}
	s.acked = max(s.acked, min(cmd.GetAcked(), cmd.GetSeq()-1))
	for seq := range s.replies {
		if seq <= s.acked {
			delete(s.replies, seq)
		}
	}
	code := m.operate(cmd)
	s.replies[cmd.GetSeq()] = &storepb.Result{Code: code}
	return code
}

func (m *lockModel) operate(cmd *storepb.Command) storepb.Code {
	switch op := cmd.GetOp().GetOp().(type) {
	case *storepb.Op_TakeLock:
		return m.take(cmd, op.TakeLock)
	case *storepb.Op_DropLocks:
		m.drop(cmd.GetSession(), op.DropLocks)
	case *storepb.Op_InterruptLock:
		return m.interrupt(cmd.GetSession(), op.InterruptLock)
	case *storepb.Op_EndSession:
		s := m.sessions[op.EndSession.GetId()]
		if s == nil || s.ended != 0 {
			return storepb.Code_SESSION_UNKNOWN
		}
		s.ended, s.endedAt = m.index, m.now
		m.dropSession(op.EndSession.GetId(), m.delay)
	case *storepb.Op_SetLimits:
		m.delay = max(0, op.SetLimits.GetLockDelay())
		m.locksPerUser = cmp.Or(op.SetLimits.GetMaxLocksPerUser(), m.locksPerUser)
		m.locksPerFile = cmp.Or(op.SetLimits.GetMaxLocksPerFile(), m.locksPerFile)
	}
	return storepb.Code_OK
}

func (m *lockModel) open(id uint64, started int64) storepb.Code {
	s := m.sessions[id]
	switch {
	case s == nil:
		m.sessions[id] = &lockModelSession{started: started, replies: map[uint64]*storepb.Result{}}
	case s.ended != 0 || started < s.started:
		return storepb.Code_SESSION_UNKNOWN
	case started > s.started:
		s.started = started
		m.dropSession(id, m.delay)
	}
	return storepb.Code_OK
}

func (m *lockModel) forgetSessions() {
	for {
		oldest := uint64(0)
		for id, s := range m.sessions {
			if s.ended != 0 && (oldest == 0 || s.ended < m.sessions[oldest].ended) {
				oldest = id
			}
		}
		if oldest == 0 || m.now-m.sessions[oldest].endedAt <= int64(7*24*time.Hour) {
			return
		}
		delete(m.sessions, oldest)
	}
}

func (m *lockModel) expire() {
	m.delayed = slices.DeleteFunc(m.delayed, func(l *lockLeft) bool { return l.until <= m.now })
	m.queue = slices.DeleteFunc(m.queue, func(r *modelRequest) bool {
		return r.interrupted != 0 && m.now-r.interrupted >= int64(2*time.Second)
	})
	m.serve()
}

// due tells whether time alone changes something.
func (m *lockModel) due(now int64) bool {
	return slices.ContainsFunc(m.delayed, func(l *lockLeft) bool { return l.until <= now }) ||
		slices.ContainsFunc(m.queue, func(r *modelRequest) bool {
			return r.interrupted != 0 && now-r.interrupted >= int64(2*time.Second)
		})
}

func requestOf(session, seq uint64, op *storepb.TakeLock) *modelRequest {
	r := &modelRequest{
		modelOwner: modelOwner{op.GetIno(), op.GetKind(), session, op.GetOwner()}, seq: seq, to: op.GetType(), byProcess: op.GetByProcess(),
	}
	for cell := range cells {
		r.at[cell] = op.GetKind() == storepb.LockKind_FLOCK || covers(op.GetStart(), op.GetEnd(), cell)
	}
	return r
}

func covers(start, end uint64, cell int) bool { return start <= uint64(cell) && uint64(cell) <= end }

// TestAdvisoryLocksAgreeWithModel gives random commands to a namespace and to the model.
func TestAdvisoryLocksAgreeWithModel(t *testing.T) {
	seen := map[storepb.Code]int{}
	rapid.Check(t, func(t *rapid.T) {
		ns, m := New(), newLockModel()
		g := &lockGenerator{generator: newGenerator(t, ns), ns: ns, m: m}
		index := uint64(0)
		for range 1 + g.below(3) {
			index++
			made := ns.Apply(ids.Index(index), &storepb.Command{Op: createOp(RootIno, nameOf(int(index)), true)})
			g.files = append(g.files, made.GetAttr().GetIno())
		}
		steps := 1 + g.below(pick(g.generator, 30, 80, 200))
		for range steps {
			index++
			cmd := g.next()
			t.Logf("%d: %v", index, cmd)
			waiting := requestsIn(g.ns)
			want := m.apply(index, cmd)
			got := g.ns.Apply(ids.Index(index), cmd)
			require.Equal(t, want, got.GetCode(), "%v", got)
			seen[want]++
			requireTold(t, g.ns, waiting)
			requireSameAdvisories(t, m, g.ns)
			require.NoError(t, g.ns.locks.Check())
			g.requireAnswers(t)
			if g.often(5) {
				data := snapshotBytes(t, g.ns.Snapshot())
				hash := g.ns.Snapshot().Hash()
				g.ns = restored(t, data)
				require.Equal(t, hash, g.ns.Snapshot().Hash())
				requireSameAdvisories(t, m, g.ns)
				require.NoError(t, g.ns.locks.Check())
			}
		}
	})
	t.Log(seen)
}

// requestsIn lists those who wait, and whether they were interrupted.
func requestsIn(ns *Namespace) map[advisory.Request]bool {
	requests := make(map[advisory.Request]bool)
	for _, lock := range ns.locks.List(0, math.MaxInt, anyFile) {
		if lock.GetPosition() != 0 {
			requests[advisory.Request{Session: ids.Session(lock.GetSession()), Seq: ids.Sequence(lock.GetSeq())}] = lock.GetInterrupted() != 0
		}
	}
	return requests
}

// requireTold tells that whoever waits for a request learns that it changed.
func requireTold(t require.TestingT, ns *Namespace, before map[advisory.Request]bool) {
	now := requestsIn(ns)
	for request, interrupted := range before {
		if is, found := now[request]; !found || is != interrupted {
			require.Contains(t, ns.Ended(), request)
		}
	}
}

// requireSameAdvisories compares everything that is held and waited for.
func requireSameAdvisories(t require.TestingT, m *lockModel, ns *Namespace) {
	type heldBy struct {
		modelOwner
		until int64
	}
	want, got := map[heldBy][cells]storepb.LockType{}, map[heldBy][cells]storepb.LockType{}
	add := func(to map[heldBy][cells]storepb.LockType, by heldBy, cell int, is storepb.LockType) {
		if is != nothing {
			all := to[by]
			all[cell] = max(all[cell], is)
			to[by] = all
		}
	}
	for o := range m.owners {
		for cell := range cells {
			add(want, heldBy{o, 0}, cell, m.has(o, cell))
		}
	}
	for _, left := range m.delayed {
		for cell := range cells {
			add(want, heldBy{left.modelOwner, left.until}, cell, left.has[cell])
		}
	}
	var queue []*modelRequest
	for _, lock := range ns.Query(queryOf(&storepb.ListAdvisoryLocks{Viewer: root})).GetAdvisoryLocks() {
		r := requestOf(lock.GetSession(), lock.GetSeq(), &storepb.TakeLock{
			Ino: lock.GetIno(), Kind: lock.GetKind(), Owner: lock.GetOwner(), Type: lock.GetType(), Start: lock.GetStart(), End: lock.GetEnd(),
			ByProcess: lock.GetByProcess(),
		})
		if lock.GetPosition() != 0 {
			r.position, r.interrupted = lock.GetPosition(), lock.GetInterrupted()
			queue = append(queue, r)
			continue
		}
		for cell, at := range r.at {
			if at {
				add(got, heldBy{r.modelOwner, lock.GetUntil()}, cell, r.to)
			}
		}
	}
	require.Equal(t, want, got)
	slices.SortFunc(queue, func(a, b *modelRequest) int { return int(a.position) - int(b.position) })
	if len(queue)+len(m.queue) > 0 {
		require.Equal(t, m.queue, queue)
	}
}

// requireAnswers compares what can be asked.
func (g *lockGenerator) requireAnswers(t require.TestingT) {
	for _, r := range g.taken {
		op := r.op(true, r.to)
		got := g.ns.Query(queryOf(&storepb.AwaitLock{
			Session: r.session, Seq: r.seq, Ino: r.ino, Kind: r.kind, Owner: r.owner, Type: r.to, Start: op.GetStart(), End: op.GetEnd(),
		}))
		require.Equal(t, g.m.await(r), got.GetCode(), "%+v", r)
	}
	if len(g.taken) > 0 {
		r := pick(g.generator, g.taken...)
		got := g.ns.Query(queryOf(&storepb.TestLock{Session: r.session, Lock: r.op(false, r.to)}))
		require.Equal(t, g.m.anyConflict(r), len(got.GetAdvisoryLocks()) == 1)
		for _, lock := range got.GetAdvisoryLocks() {
			require.True(t, conflicting(lock.GetType(), r.to))
			cell := max(int(lock.GetStart()), slices.Index(r.at[:], true))
			require.True(t, r.at[cell] && covers(lock.GetStart(), lock.GetEnd(), cell))
			require.True(t, g.m.conflicts(r.modelOwner, cell, r.to))
		}
	}
	for _, after := range []time.Duration{0, time.Second, 2 * time.Second, DefaultLockDelay} {
		require.Equal(t, g.m.due(g.ns.time+int64(after)), g.ns.Due(g.ns.time+int64(after)))
	}
}
