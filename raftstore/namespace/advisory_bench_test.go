package namespace

import (
	"fmt"
	"math"
	"testing"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// lockBench gives commands to a namespace in which many sessions have one file.
type lockBench struct {
	b     *testing.B
	ns    *Namespace
	index uint64
	seqs  map[uint64]uint64
	ino   uint64
}

func newLockBench(b *testing.B, sessions int) *lockBench {
	l := &lockBench{b: b, ns: New(), seqs: map[uint64]uint64{}}
	for session := range uint64(sessions) {
		l.apply(&storepb.Command{Session: session + 1, Op: opOf(&storepb.OpenSession{Host: nameOf(int(session))})})
	}
	l.ino = l.apply(&storepb.Command{Op: createOp(RootIno, "file", true)}).GetAttr().GetIno()
	return l
}

func (l *lockBench) apply(cmd *storepb.Command) *storepb.Result {
	l.index++
	cmd.Time = int64(l.index)
	return l.ns.Apply(ids.Index(l.index), cmd)
}

func (l *lockBench) do(session uint64, op *storepb.Op) storepb.Code {
	l.seqs[session]++
	return l.apply(&storepb.Command{Session: session, Seq: l.seqs[session], Acked: l.seqs[session] - 1, Op: op}).GetCode()
}

func (l *lockBench) take(session, owner uint64, to storepb.LockType, start, end uint64) storepb.Code {
	return l.do(session, &storepb.Op{Op: &storepb.Op_TakeLock{TakeLock: &storepb.TakeLock{
		Ino: l.ino, Kind: storepb.LockKind_RECORD, Type: to, Owner: owner, Start: start, End: end, Wait: true, ByProcess: true, Session: session,
	}}})
}

func (l *lockBench) must(want, got storepb.Code) {
	if want != got {
		l.b.Fatalf("%v, not %v", got, want)
	}
}

// BenchmarkLockRelease is a lock that nobody else wants, taken and released: alone, beside many readers, and
// beside many other ranges of its owner.
func BenchmarkLockRelease(b *testing.B) {
	for name, prepare := range map[string]func(l *lockBench){
		"alone": func(*lockBench) {},
		"beside1000Readers": func(l *lockBench) {
			for i := range uint64(1000) {
				l.must(storepb.Code_OK, l.take(2, i+1, shared, 10, math.MaxInt64))
			}
		},
		"beside10000Ranges": func(l *lockBench) {
			for i := range uint64(10_000) {
				l.must(storepb.Code_OK, l.take(1, 1, exclusive, 10+2*i, 10+2*i))
			}
		},
	} {
		b.Run(name, func(b *testing.B) {
			l := newLockBench(b, 2)
			prepare(l)
			b.ReportAllocs()
			for b.Loop() {
				l.must(storepb.Code_OK, l.take(1, 1, exclusive, 0, 1))
				l.must(storepb.Code_OK, l.take(1, 1, nothing, 0, 1))
			}
		})
	}
}

// BenchmarkLockQueue is what a release costs with many who wait, and to get into the queue again.
func BenchmarkLockQueue(b *testing.B) {
	const waiting = 1000
	for _, sessions := range []int{1, waiting} {
		for name, q := range map[string]struct {
			to        func(i uint64) storepb.LockType
			at        func(i uint64) (start, end uint64)
			holdsSome bool
		}{
			"writers": {to: func(uint64) storepb.LockType { return exclusive }},
			"readers": {to: func(uint64) storepb.LockType { return shared }},
			"mixed": {to: func(i uint64) storepb.LockType {
				if i%2 == 0 {
					return exclusive
				}
				return shared
			}},
			"writersWithRows": {to: func(uint64) storepb.LockType { return exclusive }, holdsSome: true},
			"rows": {
				to: func(uint64) storepb.LockType { return exclusive },
				at: func(i uint64) (uint64, uint64) { return i / 2, i / 2 },
			},
		} {
			b.Run(fmt.Sprintf("%s/sessions=%d", name, sessions), func(b *testing.B) {
				l := newLockBench(b, sessions+1)
				session := func(i uint64) uint64 { return 2 + i%uint64(sessions) }
				at := func(i uint64) (uint64, uint64) {
					if q.at == nil {
						return 0, waiting
					}
					return q.at(i)
				}
				for i := range uint64(waiting) {
					if q.holdsSome {
						l.must(storepb.Code_OK, l.take(session(i), i+1, exclusive, 2*waiting+2*i, 2*waiting+2*i))
					}
				}
				hold := func() { l.must(storepb.Code_OK, l.take(1, 1, exclusive, 0, waiting)) }
				line := func() {
					for i := range uint64(waiting) {
						start, end := at(i)
						l.must(storepb.Code_WAITING, l.take(session(i), i+1, q.to(i), start, end))
					}
				}
				unline := func() {
					for i := range uint64(waiting) {
						l.do(session(i), opOf(&storepb.DropLocks{Ino: l.ino, Kind: storepb.LockKind_RECORD, Owners: []uint64{i + 1}}))
					}
				}
				b.Run("release", func(b *testing.B) {
					if q.holdsSome {
						b.Skip("its rows go with its place in the queue")
					}
					for b.Loop() {
						b.StopTimer()
						hold()
						line()
						b.StartTimer()
						l.must(storepb.Code_OK, l.take(1, 1, nothing, 0, waiting))
						b.StopTimer()
						unline()
						b.StartTimer()
					}
				})
				b.Run("last", func(b *testing.B) {
					hold()
					line()
					for b.Loop() {
						start, end := at(waiting - 1)
						l.must(storepb.Code_WAITING, l.take(1, 2, exclusive, start, end))
						l.do(1, opOf(&storepb.DropLocks{Ino: l.ino, Kind: storepb.LockKind_RECORD, Owners: []uint64{2}}))
					}
				})
			})
		}
	}
}
