package sim

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/raftstore/storepb"
	"lockfs/test/ledger"
)

// TestPowerCuts cuts the power of a single server in the midst of what it writes. It starts again with what is on its disk then, has
// all that it had acknowledged, and goes on.
func TestPowerCuts(t *testing.T) {
	entry := ledger.New(ledger.Cuts)
	entry.FirstSeed, entry.LastSeed = *fromFlag, *fromFlag
	for _, kind := range []struct {
		name string
		cut  func(*powerCuts)
	}{{"entries", (*powerCuts).inEntry}, {"votes", (*powerCuts).inVote}, {"snapshots", (*powerCuts).inSnapshot}} {
		if !t.Run(kind.name, func(t *testing.T) {
			seen := make(map[string]int)
			for left, seed := *cutsFlag, *fromFlag; left > 0; left, seed = left-cutsOfOne, seed+1 {
				cutPower(t, seed, min(left, cutsOfOne), kind.cut, seen)
				entry.Counts[kind.name] += int64(min(left, cutsOfOne))
				entry.LastSeed = max(entry.LastSeed, seed)
			}
			t.Logf("%d power cuts: %v", *cutsFlag, seen)
		}) {
			entry.Findings = append(entry.Findings, fmt.Sprintf("TestPowerCuts/%s from seed %d on", kind.name, *fromFlag))
		}
	}
	must(entry.Add())
}

// cutsOfOne is how often the power of one server is cut before it is another one's turn: what it tells of events grows all the time.
const cutsOfOne = 25

// cutPower cuts that of one server so many times, and counts what was cut.
func cutPower(t *testing.T, seed uint64, times int, cut func(*powerCuts), seen map[string]int) {
	disks := foundedDisks(t, 1)
	dir := scratch(t)
	defer func() { _ = os.RemoveAll(dir) }()
	forgiving(func() {
		synctest.Test(t, func(t *testing.T) {
			c := &powerCuts{T: t, w: newWorld(plan{seed: seed, voters: 1}, dir), random: rand.New(rand.NewPCG(seed, 2)), seen: seen}
			c.s = c.w.servers[0]
			c.s.newDisk(disks[c.s.name])
			c.start()
			for range times {
				cut(c)
			}
			c.w.end()
		})
	})
}

type powerCuts struct {
	*testing.T
	w       *world
	s       *server
	random  *rand.Rand
	notes   []string       // acknowledged
	doubt   string         // asked for, and not acknowledged; empty: nothing
	made    int            // notes so far
	term    uint64         // it has led in
	removed int            // the disks of lives before this one are
	seen    map[string]int // what was cut
}

// start starts the server, and requires that it has what it should.
func (c *powerCuts) start() {
	c.s.start()
	if len(c.w.problems) > 0 {
		c.Fatal(c.w.problems)
	}
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	if err := c.s.running().WaitReady(ctx); err != nil {
		c.Fatal(err)
	}
	status, err := c.s.running().Status(ctx, new(clusterpb.StatusRequest))
	must(err)
	for ; c.removed < c.s.life-2; c.removed++ { // nobody uses those any more
		_ = os.RemoveAll(filepath.Join(c.w.dir, c.s.name, fmt.Sprint(c.removed)))
	}
	if status.GetTerm() < c.term {
		c.Fatalf("it was in term %d, and is in %d", c.term, status.GetTerm())
	}
	c.term = status.GetTerm()
	there := c.list(ctx)
	if c.doubt != "" && slices.Contains(there, c.doubt) {
		c.notes = append(c.notes, c.doubt)
		c.seen["what was not acknowledged is there"]++
	}
	c.doubt = ""
	for _, note := range c.notes {
		if !slices.Contains(there, note) {
			c.Fatalf("%s is lost; there are %v", note, there)
		}
	}
	if len(there) != len(c.notes) {
		c.Fatalf("there are %v, and should be %v", there, c.notes)
	}
}

func (c *powerCuts) list(ctx context.Context) (patterns []string) {
	reply, err := c.s.running().Execute(ctx, &clusterpb.ExecuteRequest{Request: &clusterpb.ExecuteRequest_Query{
		Query: &storepb.Query{Query: &storepb.Query_ListRules{ListRules: new(storepb.ListRules)}},
	}})
	if err != nil || reply.GetOutcome() != clusterpb.Outcome_DONE {
		c.Fatal(reply, err)
	}
	for _, rule := range reply.GetResult().GetRules() {
		if strings.HasPrefix(rule.GetPattern(), "note-") {
			patterns = append(patterns, rule.GetPattern())
		}
	}
	return patterns
}

// note asks for a change. The oldest goes after some, so that there are never too many.
func (c *powerCuts) note() {
	const most = 20
	if len(c.notes) > most {
		c.change(&storepb.Op{Op: &storepb.Op_DeleteRule{DeleteRule: &storepb.DeleteRule{Pattern: c.notes[0]}}})
		c.notes = c.notes[1:]
	}
	name := c.next()
	c.change(setNote(name))
	c.notes = append(c.notes, name)
}

// next is a name as long as a batch of entries may be, which is between some bytes and many sectors.
func (c *powerCuts) next() string {
	c.made++
	return fmt.Sprintf("note-%d-%s", c.made, strings.Repeat("x", 1+c.random.IntN(200)))
}

func setNote(name string) *storepb.Op {
	return &storepb.Op{Op: &storepb.Op_SetRule{SetRule: &storepb.SetRule{Rule: &storepb.Rule{Pattern: name, StaleAfter: int64(time.Hour)}}}}
}

func (c *powerCuts) change(op *storepb.Op) {
	reply, err := c.s.running().Change(c.Context(), &clusterpb.ChangeRequest{Op: op})
	if err != nil || reply.GetOutcome() != clusterpb.Outcome_DONE || reply.GetResult().GetCode() != storepb.Code_OK {
		c.Fatal(reply, err)
	}
}

// cutIn cuts the power in the next write but some, while something is under way that writes.
func (c *powerCuts) cutIn(skip int, do func()) {
	written := make(chan struct{})
	c.s.disk.armAfter(skip, func(before, after image) {
		torn, what := tear(before, after, c.random)
		c.seen[what]++
		c.s.torn = torn
		c.s.h.stop(false)
		close(written)
	})
	go do()
	select {
	case <-written:
	case <-time.After(patience):
		c.Fatal("nothing is written")
	}
	synctest.Wait()
	c.s.stop(false)
}

func (c *powerCuts) inEntry() {
	for range c.random.IntN(3) {
		c.note()
	}
	name := c.next()
	c.doubt = name
	node := c.s.running()
	c.cutIn(0, func() { _, _ = node.Change(context.Background(), &clusterpb.ChangeRequest{Op: setNote(name)}) })
	c.start()
}

// inVote cuts the power while the server elects itself: it writes a term, and then its vote.
func (c *powerCuts) inVote() {
	c.note()
	synctest.Wait()
	c.s.stop(false)
	c.cutIn(c.random.IntN(2), c.s.start)
	c.start()
}

// inSnapshot cuts the power while a snapshot is taken. What is on the disk then follows from the order in which raft's store works:
// both files of a snapshot are on the disk before it gets its name, and older ones go after that. The log is shortened at last.
func (c *powerCuts) inSnapshot() {
	synctest.Wait()
	before, after, newest := c.awaitSnapshot()
	synctest.Wait()
	c.s.stop(false)
	c.s.newDisk(c.partOf(before, after, newest))
	c.start()
}

// awaitSnapshot answers what is on the disk before and after a snapshot is taken, and its name. One that is taken while there are not yet
// as many entries as it takes another time goes unseen: then there are more.
func (c *powerCuts) awaitSnapshot() (before, after image, newest string) {
	for range 10 {
		for range snapshotEntries + 4 {
			c.note()
		}
		before = readImage(c.s.disk.dir)
		for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			synctest.Wait()
			after = readImage(c.s.disk.dir)
			for _, name := range snapshotsIn(after) {
				if _, there := before[name]; !there {
					return before, after, name
				}
			}
		}
	}
	c.Fatalf("no snapshot is taken; there are %v", snapshotsIn(after))
	return nil, nil, ""
}

// snapshotsIn are the directories of snapshots.
func snapshotsIn(i image) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(i)) {
		if filepath.Dir(name) == "snapshots" && !strings.HasSuffix(name, ".tmp") {
			names = append(names, name)
		}
	}
	return names
}

func (c *powerCuts) partOf(before, after image, newest string) image {
	part := maps.Clone(before)
	files := []string{"meta.json", "state.bin"}
	stage := c.random.IntN(4)
	c.seen[[]string{"being written", "named", "older ones going", "all"}[stage]]++
	switch stage {
	case 0:
		part[newest+".tmp"] = nil
		for _, file := range files {
			if content, there := c.unfinished(after[filepath.Join(newest, file)]); there {
				part[filepath.Join(newest+".tmp", file)] = content
			}
		}
	case 1, 2:
		part[newest] = nil
		for _, file := range files {
			part[filepath.Join(newest, file)] = after[filepath.Join(newest, file)]
		}
		for _, old := range snapshotsIn(before) {
			if _, stays := after[old]; stays || stage == 1 {
				continue
			}
			for _, file := range files {
				if c.random.IntN(2) == 0 {
					delete(part, filepath.Join(old, file))
				}
			}
		}
	case 3:
		return after
	}
	return part
}

// unfinished is a file that was being written: it has some of its sectors, or is not there.
func (c *powerCuts) unfinished(content []byte) (part []byte, there bool) {
	if c.random.IntN(4) == 0 {
		return nil, false
	}
	part = bytes.Clone(content[:c.random.IntN(len(content)+1)])
	for at := 0; at < len(part); at += sector {
		if c.random.IntN(3) == 0 {
			clear(part[at:min(at+sector, len(part))])
		}
	}
	return append([]byte{}, part...), true
}
