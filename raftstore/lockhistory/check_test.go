package lockhistory

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/lockjson"
	"lockfs/raftstore/storepb"
)

const second = int64(time.Second)

// told is events as a script says them, one each second: "acquired 1 a" is lock_acquired with token 1, on host a, of the name "lock".
func told(script ...string) (events []*storepb.Event) {
	for i, line := range script {
		words := strings.Fields(line)
		e := &storepb.Event{
			Number: uint64(i + 1), Index: uint64(10 * (i + 1)), Time: int64(i+1) * second, Event: "lock_" + words[0],
			Path: []byte("dir/lock"), Parent: 7, Format: "pid", Token: number(words[1]), Host: "a",
		}
		if words[0] == "refused" {
			e.Event = "removal_refused"
		}
		if len(words) > 2 {
			e.Host = words[2]
		}
		switch words[0] {
		case "stolen":
			e.Previous = &storepb.Event{Token: number(words[3])}
		case "stale", "removed":
			e.Reason = strings.Join(words[3:], " ")
		}
		events = append(events, e)
	}
	return events
}

func number(word string) (n uint64) {
	for _, digit := range word {
		n = 10*n + uint64(digit-'0')
	}
	return n
}

func check(t *testing.T, h *History) []*Contradiction {
	t.Helper()
	found, err := h.Check(time.Minute)
	require.NoError(t, err)
	return found
}

const gone = "its process 7 on a is gone"

func TestWhatCanHaveBeen(t *testing.T) {
	for _, script := range [][]string{
		{"acquired 10", "released 10", "acquired 30", "refused 30", "stale 30 a " + gone, "removed 30 a " + gone, "acquired 70"},
		{"acquired 10", "acquired 10", "stolen 30 b 10", "acquired 30 b", "released 30"},
		{"released 10", "acquired 20"},
		{"stolen 20 b 10", "acquired 20"},
		{"removed 10 a " + gone, "acquired 20"},
		{"stale 10 a " + gone, "released 10"},
		{"acquired 10", "stale 10 a its time was over at 1970-01-01T00:00:01.9Z", "removed 10 a its time was over at 1970-01-01T00:00:01.9Z"},
	} {
		require.Empty(t, check(t, &History{Events: told(script...), Whole: true}), "%q", script)
	}
}

// TestTheSmallestPiece is shown of what cannot have been: the numbers of its events.
func TestTheSmallestPiece(t *testing.T) {
	for _, test := range []struct {
		script []string
		piece  []uint64
		why    string
	}{
		{[]string{"acquired 10", "released 10", "acquired 30", "refused 30", "acquired 50 b", "released 50"}, []uint64{3, 5}, "while token 30 had it"},
		{[]string{"acquired 10", "released 10", "acquired 30", "released 30", "acquired 20"}, []uint64{4, 5}, "smaller than 30"},
		{[]string{"acquired 10", "released 10", "released 10"}, []uint64{2, 3}, "nobody had it"},
		{[]string{"acquired 10", "refused 10", "released 9"}, []uint64{2, 3}, "token 10 had it"},
		{[]string{"acquired 10", "stolen 30 b 9"}, []uint64{1, 2}, "it was stolen from token 9, but token 10 had it"},
		{[]string{"acquired 10", "stolen 10 b 10"}, []uint64{2}, "no larger than 10"},
		{[]string{"acquired 10", "removed 10 a "}, []uint64{1, 2}, "nothing had told that it was stale"},
		{[]string{"acquired 10", "removed 10 a somebody felt like it"}, []uint64{1, 2}, "nothing had told that it was stale"},
		{[]string{"acquired 10", "stale 10 a "}, []uint64{2}, "no evidence"},
		{[]string{"acquired 10", "stale 10 a it looks old"}, []uint64{2}, "no evidence that is known"},
		{[]string{"acquired 10", "stale 10 a its time was over at 1970-01-01T00:00:02Z"}, []uint64{2}, "before its time"},
		{[]string{"acquired 10", "stale 10 a its host a was declared gone for good"}, []uint64{2}, "nobody had declared"},
	} {
		found := check(t, &History{Events: told(test.script...), Whole: true})
		require.Len(t, found, 1, "%q", test.script)
		require.Contains(t, found[0].Why, test.why)
		require.Equal(t, "dir/lock", found[0].Path)
		var piece []uint64
		for _, s := range found[0].Piece {
			piece = append(piece, s.Event.GetNumber())
		}
		require.Equal(t, test.piece, piece, "%q: %s", test.script, found[0].Why)
	}
}

func TestEachContradictionIsFound(t *testing.T) {
	var script []string
	for range 3 * stretch {
		script = append(script, "acquired 10")
	}
	script[stretch+3], script[2*stretch+7] = "acquired 20", "acquired 30"
	found := check(t, &History{Events: told(script...)})
	require.Len(t, found, 2, "after each the name is judged anew")
}

func TestTimeNeverGoesBack(t *testing.T) {
	events := told("acquired 10", "released 10", "acquired 30")
	events[1].Time = 5 * second
	found := check(t, &History{Events: events})
	require.Len(t, found, 1)
	require.Contains(t, found[0].Why, "time goes back")
	require.Len(t, found[0].Piece, 2)
}

// TestWhatIsMissing says nothing: who has the name after it is believed.
func TestWhatIsMissing(t *testing.T) {
	events := told("acquired 10", "released 10", "acquired 30", "acquired 40 b", "acquired 30", "released 30")
	require.Len(t, check(t, &History{Events: events}), 1)
	inGap := call(lockjson.CallMake, 35, 1, 2)
	require.Empty(t, check(t, &History{Events: append(events[:3:3], events[5]), Calls: []*lockjson.Call{inGap}}))
	anew := told("acquired 10", "acquired 20 b", "acquired 30")
	anew[1] = &storepb.Event{Number: 1 << 40, Index: 1 << 40, Time: anew[1].GetTime(), Event: "cluster_begun"}
	anew[2].Number, anew[2].Index, anew[2].Token = 1<<40+1, 1<<40+1, 1<<40
	require.Empty(t, check(t, &History{Events: anew}))
}

// call is of the name "lock", from and until so many seconds.
func call(what string, index uint64, from, until float64) *lockjson.Call {
	at := func(s float64) time.Time { return time.Unix(0, int64(s*float64(second))).UTC() }
	return &lockjson.Call{Call: what, Host: "a", PID: 5, Begin: at(from), End: at(until), Directory: 7, Name: "lock", Index: index}
}

func TestCallsFitIn(t *testing.T) {
	events := told("acquired 10", "released 10", "acquired 30", "released 30")
	makes, removes := lockjson.CallMake, lockjson.CallRemove
	for what, calls := range map[string][]*lockjson.Call{
		"of the events":        {call(makes, 10, 0.5, 1.5), call(removes, 20, 1.7, 1.9), call(makes, 30, 1.8, 3), call(removes, 40, 5, 6)},
		"of data":              {call(makes, 22, 2, 2.5), call(removes, 25, 2.6, 2.7)},
		"of another name":      {{Call: makes, Name: "other", Directory: 7, Index: 15}},
		"that was not done":    {{Call: makes, Name: "lock", Directory: 7, Error: "EEXIST"}},
		"whose clock is wrong": {call(removes, 20, 5, 6), {Call: makes, Directory: 7, Name: "lock", Index: 30, Begin: time.Unix(1, 0), End: time.Unix(2, 0), Within: 5 * time.Second}},
	} {
		require.Empty(t, check(t, &History{Events: events, Calls: calls, Whole: true}), what)
	}
	for what, test := range map[string]struct {
		calls []*lockjson.Call
		why   string
		piece int
	}{
		"a second maker":          {[]*lockjson.Call{call(makes, 15, 1, 2)}, "told that it had made the name while token 10 had it", 2},
		"a removal that was none": {[]*lockjson.Call{call(removes, 35, 3, 4)}, "told that it had removed the name, of which no event tells", 2},
		"an answer from the past": {[]*lockjson.Call{call(makes, 30, 1, 2), call(removes, 20, 5, 6)}, "comes in the log after one that began later", 4},
	} {
		found := check(t, &History{Events: events, Calls: test.calls, Whole: true})
		require.Len(t, found, 1, what)
		require.Contains(t, found[0].Why, test.why, what)
		require.Len(t, found[0].Piece, test.piece, "%s: %v", what, found[0].Piece)
	}
	renames := call(lockjson.CallRename, 25, 2, 2.5)
	renames.ToDirectory, renames.ToName, renames.Exclusive, renames.Name = 7, "lock", true, "tmp"
	require.Empty(t, check(t, &History{Events: events, Calls: []*lockjson.Call{renames}}))
	renames.Index = 35
	require.Len(t, check(t, &History{Events: events, Calls: []*lockjson.Call{renames}}), 1, "rename with NOREPLACE, of a name that is held")
	renames.Exclusive = false
	require.Empty(t, check(t, &History{Events: events, Calls: []*lockjson.Call{renames}}))
}

func lockCall(what, owner string, from, until float64) *lockjson.Call {
	c := call(what, 0, from, until)
	c.Inode, c.Owner, c.Last, c.Directory, c.Name = 9, owner, 100, 0, ""
	return c
}

func TestKernelLocks(t *testing.T) {
	lock, unlock := lockjson.CallLock, lockjson.CallUnlock
	shared := func(c *lockjson.Call) *lockjson.Call { c.Shared = true; return c }
	upTo := func(c *lockjson.Call, start, last uint64) *lockjson.Call { c.Start, c.Last = start, last; return c }
	for what, calls := range map[string][]*lockjson.Call{
		"in turn":             {lockCall(lock, "flock 1", 1, 2), lockCall(unlock, "flock 1", 3, 4), lockCall(lock, "flock 2", 2, 5)},
		"an end not recorded": {lockCall(lock, "flock 1", 1, 2), lockCall(lock, "flock 2", 3, 4)},
		"shared":              {shared(lockCall(lock, "flock 1", 1, 2)), shared(lockCall(lock, "flock 2", 3, 4)), lockCall(unlock, "flock 1", 8, 9)},
		"other kinds":         {lockCall(lock, "flock 1", 1, 2), lockCall(lock, "record 2", 3, 4), lockCall(unlock, "flock 1", 8, 9)},
		"other ranges":        {upTo(lockCall(lock, "record 1", 1, 2), 0, 9), upTo(lockCall(lock, "record 2", 3, 4), 10, 19), lockCall(unlock, "record 1", 8, 9)},
		"a part given up": {
			lockCall(lock, "record 1", 1, 2), upTo(lockCall(unlock, "record 1", 2, 3), 10, 19), upTo(lockCall(lock, "record 2", 3, 4), 12, 13),
			lockCall(unlock, "record 1", 8, 9),
		},
	} {
		require.Empty(t, check(t, &History{Calls: calls}), what)
	}
	for what, test := range map[string]struct {
		calls []*lockjson.Call
		piece int
	}{
		"two at a time": {[]*lockjson.Call{
			lockCall(lock, "flock 0", 0, 1), lockCall(unlock, "flock 0", 1, 2),
			lockCall(lock, "flock 1", 3, 4), lockCall(lock, "flock 2", 5, 6), lockCall(unlock, "flock 1", 8, 9), lockCall(unlock, "flock 2", 9, 10),
			lockCall(lock, "flock 3", 11, 12), lockCall(unlock, "flock 3", 13, 14),
		}, 4},
		"one of them shared": {[]*lockjson.Call{
			shared(lockCall(lock, "record 1", 1, 2)), lockCall(lock, "record 2", 3, 4), lockCall(unlock, "record 1", 8, 9),
		}, 3},
	} {
		found := check(t, &History{Calls: test.calls})
		require.Len(t, found, 1, what)
		require.LessOrEqual(t, len(found[0].Piece), test.piece, "%s: %v", what, found[0].Piece)
		require.GreaterOrEqual(t, len(found[0].Piece), 3, "%s: %v", what, found[0].Piece)
	}
}

func TestHolds(t *testing.T) {
	h := &History{Events: told("released 5 z", "acquired 10", "acquired 10 b", "stolen 30 c 10", "acquired 30 c", "stale 30 c "+gone, "removed 30 c "+gone, "acquired 80")}
	at := func(s int64) time.Time { return time.Unix(s, 0).UTC() }
	holds := h.Holds("dir/lock", time.Time{}, time.Time{})
	require.Len(t, holds, 4)
	for i, want := range []Hold{
		{Token: 5, Holder: "pid on z", Until: at(1)},
		{Token: 10, Holder: "pid on b", From: at(2), Until: at(4)},
		{Token: 30, Holder: "pid on c", From: at(5), Until: at(7)},
		{Token: 80, Holder: "pid on a", From: at(8)},
	} {
		got := *holds[i]
		got.Path, got.Began, got.Ended = "", nil, nil
		require.Equal(t, want, got)
	}
	require.Contains(t, holds[2].End(), "removed by lockfs: its process 7 on a is gone (event 7)")
	require.Len(t, h.Holds("dir/lock", at(5), at(6)), 1)
	require.Len(t, h.Holds("dir/lock", at(8), time.Time{}), 1)
	require.Empty(t, h.Holds("other", time.Time{}, time.Time{}))
}
