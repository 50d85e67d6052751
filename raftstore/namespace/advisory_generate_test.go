package namespace

import (
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// lockGenerator draws commands that meet: few files, sessions, owners and bytes.
type lockGenerator struct {
	*generator
	ns    *Namespace
	m     *lockModel
	files []uint64
	taken []*modelRequest // the last ones
}

const lockSessions = 4

func (g *lockGenerator) next() *storepb.Command {
	g.now = max(g.now, g.ns.time) + pick(g.generator, 0, 0, 1, int64(time.Millisecond), int64(time.Second), int64(time.Second), int64(6*time.Second))
	session := uint64(1 + g.below(lockSessions))
	if history := g.sent[session]; len(history) > 0 && g.often(4) {
		again := proto.Clone(pick(g.generator, history[max(0, len(history)-6):]...)).(*storepb.Command)
		again.Time = g.now
		return again
	}
	if s := g.m.sessions[session]; s == nil || g.often(2) {
		started := int64(1)
		if s != nil {
			started = s.started + pick[int64](g.generator, -1, 0, 0, 1, 1)
		}
		return g.command(session, opOf(&storepb.OpenSession{Host: lockHost(session), BootId: "b", Started: started}))
	}
	switch {
	case g.often(12):
		return g.command(session, opOf(&storepb.Cancel{Seq: g.cancelled(session)}))
	case g.often(1), g.m.sessions[session].ended != 0 && g.often(30): // then it may come again
		return g.command(session, opOf(&storepb.CloseSession{InUse: g.often(50)}))
	case g.often(2):
		return g.command(0, g.end(session))
	case g.often(2):
		return g.command(0, opOf(&storepb.SetLimits{
			LockDelay:       proto.Int64(pick[int64](g.generator, -1, 0, 1, int64(DefaultLockDelay))),
			MaxLocksPerUser: pick[uint64](g.generator, 0, 1, 2, 4, 100, 100), MaxLocksPerFile: pick[uint64](g.generator, 0, 1, 3, 100, 100),
		}))
	case g.often(4):
		return g.command(0, opOf(&storepb.Tick{}))
	}
	g.seq[session]++
	cmd := g.command(session, g.lockOp(session))
	cmd.Seq = g.seq[session]
	cmd.Caller.Uid = lockUID(cmd.GetOp().GetTakeLock().GetOwner())
	if g.often(60) {
		cmd.Acked = cmd.Seq - min(cmd.Seq, pick[uint64](g.generator, 1, 1, 1, 2, 4, 8))
	}
	if op := cmd.GetOp().GetTakeLock(); op != nil && op.GetType() != nothing {
		g.taken = append(g.taken[max(0, len(g.taken)-15):], requestOf(session, cmd.GetSeq(), op))
	}
	g.sent[session] = append(g.sent[session], cmd)
	return cmd
}

// lockHost is the host of a session: there are two.
func lockHost(session uint64) string { return nameOf(int(session % 2)) }

// lockUID is the user that an owner belongs to: one of them is root.
func lockUID(owner uint64) uint32 { return []uint32{0, 1000, 1001, 0}[owner] }

func (g *lockGenerator) command(session uint64, op *storepb.Op) *storepb.Command {
	return &storepb.Command{Session: session, Time: g.now, Op: op, Caller: &storepb.Caller{Host: lockHost(session)}}
}

func (g *lockGenerator) end(session uint64) *storepb.Op {
	op := &storepb.EndSession{Id: session}
	if s, found := g.ns.sessions.byID.Get(ids.Session(session)); found {
		op.IfActive = uint64(s.active)
	}
	return opOf(op)
}

// cancelled is the number of a recent lock, mostly, or of a command that has not come yet.
func (g *lockGenerator) cancelled(session uint64) uint64 {
	return g.seq[session] + 1 - min(g.seq[session]+1, pick[uint64](g.generator, 0, 1, 1, 1, 2, 2, 3, 4, 5, 6))
}

func (g *lockGenerator) lockOp(session uint64) *storepb.Op {
	switch {
	case g.often(10):
		if op := g.interrupt(session); op != nil {
			return op
		}
	case g.often(7):
		op := &storepb.DropLocks{Ino: pick(g.generator, g.files...), Kind: g.kind(), Lost: g.often(20)}
		for range 1 + g.below(2) {
			op.Owners = append(op.Owners, uint64(1+g.below(3)))
		}
		return opOf(op)
	case g.often(15): // what was asked for before, again
		for _, r := range slices.Backward(g.taken) {
			if r.session == session && g.often(60) {
				return opOf(r.op(g.often(80), r.to))
			}
		}
	}
	op := &storepb.TakeLock{
		Ino: pick(g.generator, g.files...), Kind: g.kind(), Owner: uint64(1 + g.below(3)), Session: session, Wait: g.often(70),
		Type: pick(g.generator, nothing, shared, shared, exclusive, exclusive), End: math.MaxInt64,
	}
	if g.often(1) {
		op.Session++
	}
	if op.GetKind() == storepb.LockKind_RECORD {
		op.ByProcess = op.GetOwner() != 3 || g.often(20)
		op.Start = uint64(g.below(cells))
		if last := op.GetStart() + uint64(g.below(cells)); last < cells-1 {
			op.End = last
		}
	}
	return opOf(op)
}

func (r *modelRequest) op(wait bool, to storepb.LockType) *storepb.TakeLock {
	op := &storepb.TakeLock{
		Ino: r.ino, Kind: r.kind, Owner: r.owner, Session: r.session, Wait: wait, Type: to, ByProcess: r.byProcess,
		Start: uint64(slices.Index(r.at[:], true)), End: math.MaxInt64,
	}
	if !r.at[cells-1] {
		op.End = uint64(cells - 1 - slices.Index(slices.Collect(backwards(r.at)), true))
	}
	return op
}

func backwards(at [cells]bool) func(func(bool) bool) {
	return func(yield func(bool) bool) {
		for _, is := range slices.Backward(at[:]) {
			if !yield(is) {
				return
			}
		}
	}
}

func (g *lockGenerator) kind() storepb.LockKind {
	return pick(g.generator, storepb.LockKind_FLOCK, storepb.LockKind_RECORD, storepb.LockKind_RECORD, storepb.LockKind_RECORD)
}

func (g *lockGenerator) interrupt(session uint64) *storepb.Op {
	for _, r := range slices.Backward(g.taken) {
		if r.session == session && g.often(50) {
			op := r.op(true, r.to)
			return opOf(&storepb.InterruptLock{
				Seq: r.seq, Ino: r.ino, Kind: r.kind, Owner: r.owner, Type: r.to, Start: op.GetStart(), End: op.GetEnd(),
			})
		}
	}
	return nil
}
