package auditverify

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/audit"
	"lockfs/raftstore/eventchain"
	"lockfs/raftstore/lockjson"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// chained makes events of a cluster follow each other, one each second.
func chained(cluster string, events ...*storepb.Event) []*storepb.Event {
	events = append([]*storepb.Event{{Event: "cluster_begun", Cluster: cluster}}, events...)
	var before []byte
	for i, e := range events {
		e.Number, e.Index, e.Time, e.Before = uint64(i+1), uint64(10*(i+1)), int64(i+1)*int64(time.Second), before
		if e.GetEvent() == "lock_acquired" {
			e.Token = e.GetIndex()
		}
		e.Hash = eventchain.Hash(e)
		before = e.GetHash()
	}
	return events
}

// turns are some who have a lock one after the other.
func turns(count int) (events []*storepb.Event) {
	for i := range count {
		events = append(events,
			&storepb.Event{Event: "lock_acquired", Path: []byte("deploy.lock"), Parent: 1, Format: "pid", Host: fmt.Sprint("h", i)},
			&storepb.Event{Event: "lock_released", Path: []byte("deploy.lock"), Parent: 1, Token: uint64(20 * (i + 1)), Format: "pid", Host: fmt.Sprint("h", i)})
	}
	return events
}

func lines(events []*storepb.Event) (lines []string) {
	for _, e := range events {
		lines = append(lines, string(lockjson.EventLine(e))+"\n")
	}
	return lines
}

// written puts logs into files.
func written(t *testing.T, logs ...[]string) (files []string) {
	t.Helper()
	for i, log := range logs {
		file := filepath.Join(t.TempDir(), fmt.Sprintf("%c.jsonl", 'a'+i))
		require.NoError(t, os.WriteFile(file, []byte(strings.Join(log, "")), 0o600))
		files = append(files, file)
	}
	return files
}

func ask(t *testing.T, q Question) *Answer {
	t.Helper()
	a, err := q.Ask()
	require.NoError(t, err)
	return a
}

func kinds(a *Answer) (kinds []Kind) {
	for _, p := range a.Problems {
		kinds = append(kinds, p.Kind)
	}
	return kinds
}

func TestSoundLogs(t *testing.T) {
	log := lines(chained("c", turns(5)...))
	a := ask(t, Question{Files: written(t, log, log, log[:8]), Path: "/deploy.lock", Since: time.Unix(3, 0), Until: time.Unix(9, 0)})
	require.True(t, a.Proven(), "%+v", a)
	require.True(t, a.Whole)
	require.EqualValues(t, 11, a.Compared)
	require.Equal(t, 11, a.Events)
	require.Len(t, a.Notes, 1)
	require.Contains(t, a.Notes[0], "ends with event 8, and another log continues to 11", "a tail that is not there is told as such")
	require.Len(t, a.Holds, 4)
	require.EqualValues(t, 20, a.Holds[0].Token)
	require.Equal(t, "pid on h0", a.Holds[0].Holder)
	require.Contains(t, a.Holds[0].End, "released (event 3)")
}

// TestTampering has each kind of it done to one of three logs, and to a single one.
func TestTampering(t *testing.T) {
	events := chained("c", turns(5)...)
	good := lines(events)
	forged := chained("c", turns(5)...)
	forged[4].Host = "somebody"
	forged[4].Hash = eventchain.Hash(forged[4])
	for name, test := range map[string]struct {
		log  []string
		want []Kind // of the log alone
		line int    // of the first problem
		with []Kind // with two others
	}{
		"removed":              {slices.Delete(slices.Clone(good), 4, 5), []Kind{Missing}, 5, []Kind{Missing}},
		"several removed":      {slices.Delete(slices.Clone(good), 2, 6), []Kind{Missing}, 3, []Kind{Missing}},
		"changed":              {changed(good, 4, `"h1"`, `"h9"`), []Kind{Changed}, 5, []Kind{Changed}},
		"changed, not by much": {changed(good, 4, `,"event"`, `, "event"`), []Kind{Changed}, 5, []Kind{Changed}},
		"changed, and hashed":  {changedTo(good, 4, lines(forged)[4]), []Kind{Unchained}, 6, []Kind{Unchained, Differs}},
		"without a hash":       {changed(good, 4, `"hash":"`, `"hasch":"`), []Kind{Changed, Unchained}, 5, []Kind{Changed, Unchained, Differs}},
		"reordered":            {swapped(good, 4), []Kind{Moved}, 6, []Kind{Moved}},
		"repeated":             {slices.Insert(slices.Clone(good), 5, good[4]), []Kind{Repeated}, 6, []Kind{Repeated}},
		"garbled":              {slices.Insert(slices.Clone(good), 5, "hello\n"), []Kind{Garbled}, 6, []Kind{Garbled}},
		"torn in the middle":   {changedTo(good, 4, good[4][:30]+"\n"), []Kind{Garbled, Missing}, 5, []Kind{Garbled, Missing}},
	} {
		t.Run(name, func(t *testing.T) {
			a := ask(t, Question{Files: written(t, test.log)})
			require.Equal(t, test.want, kinds(a), "%+v", a.Problems)
			require.Equal(t, test.line, a.Problems[0].Line)
			a = ask(t, Question{Files: written(t, good, test.log, good)})
			require.Equal(t, test.with, kinds(a), "%+v", a.Problems)
			require.False(t, a.Sound())
			require.Empty(t, a.Contradictions, "the others tell what is missing: %+v", a.Contradictions)
			require.Empty(t, a.Uncovered)
			require.Contains(t, a.Problems[0].Log, "b.jsonl")
		})
	}
}

func changed(log []string, at int, from, to string) []string {
	return changedTo(log, at, strings.Replace(log[at], from, to, 1))
}

func changedTo(log []string, at int, line string) []string {
	log = slices.Clone(log)
	log[at] = line
	return log
}

func swapped(log []string, at int) []string {
	log = slices.Clone(log)
	log[at], log[at+1] = log[at+1], log[at]
	return log
}

func TestEnds(t *testing.T) {
	good := lines(chained("c", turns(5)...))
	a := ask(t, Question{Files: written(t, slices.Concat(good[:4], []string{good[4][:40]}))})
	require.True(t, a.Sound())
	require.Contains(t, a.Notes[0], "ends with a part of a line")
	a = ask(t, Question{Files: written(t, good[3:])})
	require.True(t, a.Proven())
	require.False(t, a.Whole)
	require.Contains(t, a.Notes[0], "begin with event 4")
	a = ask(t, Question{Files: written(t, good[3:]), Since: time.Unix(1, 0)})
	require.True(t, a.Sound())
	require.Contains(t, a.Uncovered[0], "earlier events are missing")
	a = ask(t, Question{Files: written(t, good[:4], good[7:])})
	require.True(t, a.Sound(), "no log has a gap")
	require.Contains(t, a.Uncovered[0], "events 5 to 7 are in none of the logs")
	a = ask(t, Question{Files: written(t, good[:4], good[7:]), Since: time.Unix(9, 0)})
	require.True(t, a.Proven(), "%+v", a.Uncovered)
	a = ask(t, Question{Files: written(t, nil)})
	require.False(t, a.Proven())
	_, err := (&Question{Files: []string{filepath.Join(t.TempDir(), "missing")}}).Ask()
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestAnotherClustersLog(t *testing.T) {
	mine, theirs := lines(chained("mine", turns(5)...)), lines(chained("theirs", turns(7)...))
	a := ask(t, Question{Files: written(t, mine, theirs, mine)})
	require.Equal(t, []Kind{Stranger}, kinds(a))
	require.Contains(t, a.Problems[0].Log, "b.jsonl")
	require.Contains(t, a.Problems[0].Text, "of theirs")
	require.Equal(t, 11, a.Events, "it counts for nothing")
	a = ask(t, Question{Files: written(t, mine, mine, theirs[4:])})
	require.Equal(t, []Kind{Stranger}, kinds(a), "without the event that names it")
}

// TestADoubleHolder is in logs that are whole, as if the servers themselves had been wrong.
func TestADoubleHolder(t *testing.T) {
	events := turns(5)
	second := &storepb.Event{Event: "lock_acquired", Path: []byte("deploy.lock"), Parent: 1, Format: "pid", Host: "thief"}
	events = slices.Insert(events, 5, second)
	for _, e := range events[6:] {
		if e.GetEvent() == "lock_released" {
			e.Token += 10
		}
	}
	log := lines(chained("c", events...))
	a := ask(t, Question{Files: written(t, log, log, log)})
	require.Empty(t, a.Problems)
	require.NotEmpty(t, a.Contradictions)
	c := a.Contradictions[0]
	require.Equal(t, "deploy.lock", c.Path)
	require.Len(t, c.Piece, 2, "%+v", c)
	require.Equal(t, []uint64{6, 7}, []uint64{c.Piece[0].Event.Number, c.Piece[1].Event.Number})
	require.Contains(t, c.Why, "while token 60 had it")
	require.Empty(t, ask(t, Question{Files: written(t, log), Path: "deploy.lock", Until: time.Unix(4, 0)}).Contradictions)
	require.Empty(t, ask(t, Question{Files: written(t, log), Path: "other"}).Contradictions)
}

// TestRotatedFilesAreOneLog, as the trail of a server is rotated, the oldest removed.
func TestRotatedFilesAreOneLog(t *testing.T) {
	events := chained("c", turns(40)...)
	dir := t.TempDir()
	trail, err := audit.Open(audit.Config{Path: filepath.Join(dir, "audit.jsonl"), MaxSize: 4 << 10, Keep: 3})
	require.NoError(t, err)
	for _, e := range events {
		require.NoError(t, trail.Append([]audit.Line{{Number: e.GetNumber(), JSON: lockjson.EventLine(e)}}))
	}
	require.NoError(t, trail.Close())
	for _, file := range []string{dir, filepath.Join(dir, "audit.jsonl"), filepath.Join(dir, "audit.jsonl.2")} {
		a := ask(t, Question{Files: []string{file}})
		require.True(t, a.Proven(), "%+v", a)
		require.Len(t, a.Logs, 1)
		require.Len(t, a.Logs[0].Files, 4)
		require.EqualValues(t, len(events), a.Last)
		require.Greater(t, a.First, uint64(1))
	}
	require.NoError(t, os.Remove(filepath.Join(dir, "audit.jsonl.2")))
	require.Equal(t, []Kind{Missing}, kinds(ask(t, Question{Files: []string{dir}})))
}

// TestAClusterThatGoesOnBeginsAnotherChain, which says so.
func TestAClusterThatGoesOnBeginsAnotherChain(t *testing.T) {
	ns := namespace.New()
	ns.Apply(1, &storepb.Command{Op: &storepb.Op{Op: &storepb.Op_SetCluster{SetCluster: &storepb.SetCluster{Id: "lost"}}}})
	require.NoError(t, ns.Rebase(time.Now(), namespace.RebaseOptions{Cluster: "new"}))
	a := ask(t, Question{Files: written(t, lines(ns.Events(0, 100)))})
	require.True(t, a.Proven(), "%+v", a)
	require.Len(t, a.Notes, 1)
	require.Contains(t, a.Notes[0], "begins another chain: it continues the lost cluster lost")
	require.Equal(t, "new", a.Logs[0].Cluster)
}

func TestALogFromStandardInput(t *testing.T) {
	a := ask(t, Question{Stdin: strings.NewReader(strings.Join(lines(chained("c", turns(5)...)), "")), Files: []string{"-"}})
	require.True(t, a.Proven(), "%+v", a)
	require.Equal(t, 11, a.Events)
}
