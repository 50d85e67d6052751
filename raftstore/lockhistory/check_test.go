package lockhistory

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
		require.Empty(t, (&History{Events: told(script...), Whole: true}).Check(), "%q", script)
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
		{[]string{"acquired 10", "released 10", "released 10"}, []uint64{2, 3}, "it was free"},
		{[]string{"acquired 10", "refused 10", "released 9"}, []uint64{2, 3}, "token 10 had it"},
		{[]string{"acquired 10", "stolen 30 b 9"}, []uint64{1, 2}, "it was stolen from token 9, but token 10 had it"},
		{[]string{"acquired 10", "stolen 10 b 10"}, []uint64{2}, "no larger than 10"},
		{[]string{"acquired 10", "removed 10 a "}, []uint64{1, 2}, "without an event that it was stale"},
		{[]string{"acquired 10", "removed 10 a somebody felt like it"}, []uint64{1, 2}, "without an event that it was stale"},
		{[]string{"acquired 10", "stale 10 a "}, []uint64{2}, "no evidence"},
		{[]string{"acquired 10", "stale 10 a it looks old"}, []uint64{2}, "no evidence that is known"},
		{[]string{"acquired 10", "stale 10 a its time was over at 1970-01-01T00:00:02Z"}, []uint64{2}, "before its time"},
		{[]string{"acquired 10", "stale 10 a its host a was declared gone for good"}, []uint64{2}, "without a host_forgotten event"},
	} {
		found := (&History{Events: told(test.script...), Whole: true}).Check()
		require.Len(t, found, 1, "%q", test.script)
		require.Contains(t, found[0].Why, test.why)
		require.Equal(t, "dir/lock", found[0].Path)
		var piece []uint64
		for _, s := range found[0].Piece {
			piece = append(piece, s.GetNumber())
		}
		require.Equal(t, test.piece, piece, "%q: %s", test.script, found[0].Why)
	}
}

func TestEachContradictionIsFound(t *testing.T) {
	var script []string
	for range 1500 {
		script = append(script, "acquired 10")
	}
	script[503], script[1007] = "acquired 20", "acquired 30"
	found := (&History{Events: told(script...)}).Check()
	require.Len(t, found, 2, "after each the name is judged anew")
}

func TestTimeNeverGoesBack(t *testing.T) {
	events := told("acquired 10", "released 10", "acquired 30")
	events[1].Time = 5 * second
	found := (&History{Events: events}).Check()
	require.Len(t, found, 1)
	require.Contains(t, found[0].Why, "time goes back")
	require.Len(t, found[0].Piece, 2)
}

// TestWhatIsMissing says nothing: who has the name after it is believed.
func TestWhatIsMissing(t *testing.T) {
	events := told("acquired 10", "released 10", "acquired 30", "acquired 40 b", "acquired 30", "released 30")
	require.Len(t, (&History{Events: events}).Check(), 1)
	require.Empty(t, (&History{Events: append(events[:3:3], events[5])}).Check())
	anew := told("acquired 10", "acquired 20 b", "acquired 30")
	anew[1] = &storepb.Event{Number: 1 << 40, Index: 1 << 40, Time: anew[1].GetTime(), Event: "cluster_begun"}
	anew[2].Number, anew[2].Index, anew[2].Token = 1<<40+1, 1<<40+1, 1<<40
	require.Empty(t, (&History{Events: anew}).Check())
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
