package raftstore

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/storepb"
)

// byCreator has a rule for all names under which their makers hold them.
func byCreator(tb testing.TB, onStale string) *tree {
	tr := newTree(tb)
	tr.rule(&storepb.Rule{Pattern: "**", Holder: "creator", OnStale: onStale}).ok()
	return tr
}

// as does an operation for a process, the first of the line, with family of them in its process group.
func (tr *tree) as(session uint64, family uint32, op *storepb.Op, line ...*storepb.Process) step {
	cmd := tr.next(session, op)
	cmd.Caller.Lineage, cmd.Caller.Family = line, family
	return tr.apply(cmd)
}

// ended tells of the end of a process at a time.
func (tr *tree) ended(session uint64, process *storepb.Process, at int64) {
	tr.tb.Helper()
	tr.do(session, opOf(&storepb.ProcessGone{Processes: []*storepb.Process{process}, Ended: []int64{at}})).ok()
}

// TestImpatientRuleWithHeirsRemovesOnce: a name that is known under several processes is one name.
func TestImpatientRuleWithHeirsRemovesOnce(t *testing.T) {
	for _, onStale := range []string{"keep", "remove"} {
		t.Run(onStale, func(t *testing.T) {
			tr := newTree(t)
			tr.rule(&storepb.Rule{Pattern: "**", Holder: "creator", HostTimeout: 1, OnStale: onStale}).ok()
			ino := tr.as(here, 3, createOp(RootIno, "lock", true), processOf(3), processOf(2), processOf(1)).ok().GetAttr().GetIno()
			tr.fill(here, RootIno, "lock", pidFacts("pid", processOf(4))).ok()
			tr.as(here, 3, opOf(&storepb.Link{Ino: ino, Parent: RootIno, Name: []byte("other")}), processOf(3), processOf(2)).ok()
			tr.giveUp(here)
			event := tr.lastEvent()
			tr.tick(time.Hour)
			requireConsistent(t, tr.ns)
			want := []string{"lock_stale lock", "lock_stale other"}
			if onStale == "remove" {
				tr.requireNone("lock", "other")
				want = []string{"lock_stale lock", "lock_removed lock", "lock_stale other", "lock_removed other"}
			}
			tr.requireEvents(event, want...)
			require.False(t, tr.ns.Due(tr.ns.time))
		})
	}
}

// TestStrangeLineages make no maker that could not be restored.
func TestStrangeLineages(t *testing.T) {
	long := &storepb.Process{Pid: 1, BootId: strings.Repeat("b", MaxName+1)}
	wide := &storepb.Process{Pid: 1, BootId: "boot", SeenFrom: make([]uint64, maxSeenFrom+1)}
	var endless []*storepb.Process
	for pid := range uint32(100_000) {
		endless = append(endless, &storepb.Process{Pid: pid + 1, BootId: "boot", SeenFrom: make([]uint64, maxSeenFrom)})
	}
	for name, row := range map[string]struct {
		line []*storepb.Process
		made int // how many could have made it
	}{
		"nobody":             {[]*storepb.Process{nil}, 0},
		"of no number":       {[]*storepb.Process{{BootId: "boot"}}, 0},
		"a long boot":        {[]*storepb.Process{long}, 0},
		"many namespaces":    {[]*storepb.Process{wide}, 0},
		"a hole":             {[]*storepb.Process{processOf(1), nil, processOf(3)}, 1},
		"the same":           {[]*storepb.Process{processOf(1), processOf(1)}, 1},
		"a long boot above":  {[]*storepb.Process{processOf(1), processOf(2), long}, 2},
		"an endless lineage": {endless, 1 + maxHeirs},
	} {
		t.Run(name, func(t *testing.T) {
			tr := byCreator(t, "remove")
			tr.as(here, math.MaxUint32, createOp(RootIno, "lock", true), row.line...).ok()
			require.Len(t, tr.ns.Query(listProcesses("here")).GetProcesses(), row.made)
			requireConsistent(t, tr.ns)
			tr.restart()
			for range row.made {
				tr.tick(time.Hour)
				tr.gone(here, tr.ns.Query(listProcesses("here")).GetProcesses()...).ok()
			}
			require.Empty(t, tr.ns.Query(listProcesses("here")).GetProcesses())
		})
	}
}
