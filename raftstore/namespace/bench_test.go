package namespace

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lockfs/raftstore/digest"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

const heldLocks = 1_000_000

// heldNamespace has so many locks in 1,000 directories, each with 20 bytes, and with facts if there are any.
func heldNamespace(locks int, factsOf func(i int) *storepb.Facts) (ns *Namespace, index uint64) {
	ns = New()
	apply := func(op *storepb.Op) *storepb.Attr {
		index++
		return ns.Apply(ids.Index(index), &storepb.Command{Time: int64(index), Op: op}).GetAttr()
	}
	apply(opOf(&storepb.SetLimits{MaxBytes: 1 << 40}))
	dir := uint64(RootIno)
	for i := range locks {
		if i%1000 == 0 {
			dir = apply(opOf(&storepb.Create{Parent: RootIno, Name: []byte(nameOf(i)), Mode: someDir})).GetIno()
		}
		made := apply(createOp(dir, nameOf(i), true))
		apply(&storepb.Op{Op: &storepb.Op_SetContent{SetContent: &storepb.SetContent{
			Ino: made.GetIno(), IfVersion: made.GetVersion(), Content: make([]byte, 20), Facts: factsOf(i),
		}}})
	}
	return ns, index
}

func noFacts(int) *storepb.Facts { return nil }

// someFacts are different for each lock, as if they had come over the wire. Each process holds four.
func someFacts(i int) *storepb.Facts {
	switch i % 3 {
	case 0:
		facts := factsFor(storepb.Format_TOWER, "request-"+strconv.Itoa(i), math.MaxInt64-int64(i))
		facts.Host = strings.Clone("host-1")
		return facts
	case 1:
		facts := pidFacts(storepb.Format_PID, processOf(uint32(i/12)))
		facts.Host, facts.Holder, facts.Process.BootId = strings.Clone("host-1"), strconv.Itoa(i/12), strings.Clone(someBoot)
		return facts
	}
	return nil
}

const someBoot = "6f1e9a3c-97a5-4c7e-8c1e-2b1f6d0c5a10"

// BenchmarkApplyCycle is create, set content and unlink in one session, beside held locks and under rules.
func BenchmarkApplyCycle(b *testing.B) {
	for name, beside := range map[string]struct {
		locks, rules int
		facts        func(int) *storepb.Facts
	}{
		"empty": {0, 0, noFacts}, "beside100k": {100_000, 0, noFacts}, "beside100kWithFacts": {100_000, 0, someFacts},
		"under10Rules": {0, 10, noFacts}, "under1000Rules": {0, MaxRules, noFacts},
	} {
		b.Run(name, func(b *testing.B) {
			ns, index := heldNamespace(beside.locks, beside.facts)
			for i := range beside.rules {
				index++
				ns.Apply(ids.Index(index), &storepb.Command{Op: opOf(&storepb.SetRule{Rule: &storepb.Rule{
					Pattern: fmt.Sprintf("dir-%d/**/*.lock", i), StaleAfter: int64(time.Hour),
				}})})
			}
			seq := uint64(0)
			open := &storepb.Command{Session: here, Op: opOf(&storepb.OpenSession{})}
			ns.Apply(ids.Index(index+1), open)
			index++
			content, name := make([]byte, 20), []byte("lock")
			do := func(op *storepb.Op) *storepb.Result {
				index++
				seq++
				return ns.Apply(ids.Index(index), &storepb.Command{
					Session: here, Seq: seq, Acked: seq - 1, Time: int64(index) * int64(time.Millisecond), Op: op,
				})
			}
			b.ReportAllocs()
			for b.Loop() {
				attr := do(&storepb.Op{Op: &storepb.Op_Create{Create: &storepb.Create{
					Parent: RootIno, Name: name, Mode: someFile, Exclusive: true,
				}}}).GetAttr()
				do(&storepb.Op{Op: &storepb.Op_SetContent{SetContent: &storepb.SetContent{
					Ino: attr.GetIno(), IfVersion: attr.GetVersion(), Content: content,
				}}})
				do(&storepb.Op{Op: &storepb.Op_Unlink{Unlink: &storepb.Unlink{Parent: RootIno, Name: name}}})
			}
		})
	}
}

// BenchmarkMillionLocks tells what many held locks cost: memory, the time that taking a snapshot stalls
// Apply, the first changes after it (which copy nodes), writing it and restoring it, and the hash of the state: what reading it costs
// again and after a change, what keeping it costs a change, and what it would cost to make it anew.
func BenchmarkMillionLocks(b *testing.B) {
	before := heapBytes()
	ns, index := heldNamespace(heldLocks, someFacts)
	perLock := float64(heapBytes()-before) / heldLocks
	var data bytes.Buffer
	if err := ns.Snapshot().Write(&data); err != nil {
		b.Fatal(err)
	}
	b.Run("memory", func(b *testing.B) {
		for b.Loop() {
			runtime.KeepAlive(ns)
		}
		b.ReportMetric(perLock, "B/lock")
		b.ReportMetric(float64(data.Len())/heldLocks, "snapshotB/lock")
	})
	b.Run("snapshot", func(b *testing.B) {
		for b.Loop() {
			ns.Snapshot()
		}
	})
	setContent := func() {
		index++
		ino := 2 + index*7919%heldLocks
		version := ns.Query(getAttr(ino)).GetAttr().GetVersion()
		ns.Apply(ids.Index(index), &storepb.Command{Op: &storepb.Op{Op: &storepb.Op_SetContent{
			SetContent: &storepb.SetContent{Ino: ino, IfVersion: version},
		}}})
	}
	b.Run("setContentAfterSnapshot", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			ns.Snapshot()
			b.StartTimer()
			setContent()
		}
	})
	for _, changes := range []int{0, 1} {
		b.Run(fmt.Sprintf("hashAfter%dChanges", changes), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				for range changes {
					setContent()
				}
				b.StartTimer()
				ns.Hash()
			}
		})
	}
	b.Run("keepHash", func(b *testing.B) { keepHash(b, ns, setContent) })
	b.Run("hashAnew", func(b *testing.B) {
		for b.Loop() {
			ns.Rehash()
		}
	})
	b.Run("setRule", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			index++
			rule := &storepb.Rule{Pattern: "*.lock", StaleAfter: int64(time.Hour) + int64(i)}
			ns.Apply(ids.Index(index), &storepb.Command{Op: &storepb.Op{Op: &storepb.Op_SetRule{SetRule: &storepb.SetRule{Rule: rule}}}})
		}
	})
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			if err := ns.Snapshot().Write(io.Discard); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("restore", func(b *testing.B) {
		for b.Loop() {
			if _, err := Restore(bytes.NewReader(data.Bytes())); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// keepHash tells what a change costs whose part of the hash is kept, and what one costs without: medians of the processor's time of many
// changes at a time, in turn, so that what else goes on counts for both. The hash is wrong afterwards.
func keepHash(b *testing.B, ns *Namespace, change func()) {
	const changes = 4096 // several times as many as wait to be hashed
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	median := func(took []float64) float64 {
		slices.Sort(took)
		return took[len(took)/2]
	}
	var with, without []float64
	for b.Loop() {
		for range 9 {
			with = append(with, threadTime(b, changes, change))
			kept := *ns.digest
			*ns.digest = *digest.Restoring() // takes no notice
			without = append(without, threadTime(b, changes, change))
			*ns.digest = kept
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(with), "ns/change")
	b.ReportMetric(median(without), "ns/changeWithoutHash")
}

// threadTime is what the processor spends on something in this thread, in nanoseconds each time.
func threadTime(b *testing.B, times int, do func()) float64 {
	spent := func() int64 {
		var usage unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_THREAD, &usage); err != nil {
			b.Fatal(err)
		}
		return usage.Utime.Nano() + usage.Stime.Nano()
	}
	before := spent()
	for range times {
		do()
	}
	return float64(spent()-before) / float64(times)
}

func heapBytes() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
