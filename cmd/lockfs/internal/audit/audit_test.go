package audit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/auditverify"
	"lockfs/raftstore/lockjson"
)

func at(second int64) time.Time { return time.Unix(second, 0).UTC() }

// answer has all that there can be in one.
func answer() *auditverify.Answer {
	return &auditverify.Answer{
		Logs:   []*auditverify.LogAnswer{{Name: "a.jsonl", Events: 3, First: 1, Last: 3, Hash: "00ff", Cluster: "c"}, {Name: "b.jsonl"}},
		Events: 3, First: 1, Last: 3, Begin: at(1), End: at(9), Path: "deploy.lock",
		Holds: []*auditverify.Hold{
			{Path: "deploy.lock", Token: 5, Holder: "pid on <b>h1</b>", Until: at(3), End: "released (event 2)"},
			{Path: "deploy.lock", Token: 7, Holder: "pid\x1b[2J on h2", From: at(4), End: "no end is recorded"},
		},
		Remarks: []*auditverify.Remark{{Number: 2, At: at(3), Path: "deploy.lock", Text: "it was removed by force"}},
		Notes:   []string{"b.jsonl ends early"},
	}
}

func TestTheAnswerIsASentenceWithItsGrounds(t *testing.T) {
	a := answer()
	var text strings.Builder
	require.NoError(t, printAnswer(&text, a))
	require.True(t, strings.HasPrefix(text.String(), "no two holders of deploy.lock between 1970-01-01T00:00:01.000Z and 1970-01-01T00:00:09.000Z\n"), text.String())
	for _, words := range []string{"before the logs begin", "token 7, pid\ufffd[2J on h2", "a.jsonl: 3 events, 1 to 3", "b.jsonl ends early", "worth a look: event 2"} {
		require.Contains(t, text.String(), words)
	}
	require.NoError(t, verdict(a))

	a.Uncovered = []string{"events 5 to 7 are in none of the logs"}
	require.Contains(t, statement(a), "not proven: events 5 to 7 are in none")
	require.ErrorContains(t, verdict(a), "exit code 3")
	a.Problems = []*auditverify.Problem{{Kind: auditverify.Changed, Log: "a.jsonl", File: "a.jsonl", Line: 2, Text: "event 2 was changed"}}
	require.Contains(t, statement(a), "the logs have been changed")
	text.Reset()
	require.NoError(t, printAnswer(&text, a))
	require.Contains(t, text.String(), "a.jsonl:2: changed: event 2 was changed\n")
	require.NotContains(t, text.String(), "is unchanged and follows")
	require.ErrorContains(t, verdict(a), "exit code 2")
}

func TestThePageIsWholeByItself(t *testing.T) {
	a := answer()
	a.Contradictions = []*auditverify.Contradiction{{Path: "deploy.lock", Why: "it was acquired with token 7 while token 5 had it", Piece: []*auditverify.Step{
		{At: at(1), Text: "event 1: lock_acquired, token 5"}, {At: at(4), Text: "event 3: lock_acquired, token 7"},
	}}}
	for _, step := range a.Contradictions[0].Piece {
		step.Event = &lockjson.Event{Event: "lock_acquired"}
	}
	file := filepath.Join(t.TempDir(), "page.html")
	require.NoError(t, writePage(file, a))
	page, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, words := range []string{
		"1 CONTRADICTIONS: the records of deploy.lock are impossible", "it was acquired with token 7 while token 5 had it", "event 3: lock_acquired, token 7",
		"Who had deploy.lock", "pid on &lt;b&gt;h1&lt;/b&gt;", `class="bar open"`,
	} {
		require.Contains(t, string(page), words)
	}
	require.NotRegexp(t, `(?i)(src|href|url|import)\s*[=(]`, string(page), "it loads nothing")
	require.NotContains(t, string(page), "ZgotmplZ")
}

func TestTimelinesFitTheirBars(t *testing.T) {
	line := draw([]bar{{from: at(10), until: at(20)}, {from: at(20)}, {until: at(12)}, {from: at(15), until: at(15)}}, at(10), at(30))
	for i, want := range [][2]float64{{0, 50}, {50, 50}, {0, 10}, {25, 0.5}} {
		require.InDelta(t, want[0], line.Lanes[i].Left, 0.01)
		require.InDelta(t, want[1], line.Lanes[i].Width, 0.01)
	}
	require.True(t, line.Lanes[1].Open)
	line = draw([]bar{{from: at(5), until: at(5)}}, time.Time{}, time.Time{})
	require.True(t, line.Begin.Before(at(5)) && line.End.After(at(5)))
}

func TestTimesAreRead(t *testing.T) {
	berlin := time.FixedZone("", 3600)
	now := time.Date(2026, 3, 4, 15, 30, 0, 0, berlin)
	for text, want := range map[string]time.Time{
		"09:00": time.Date(2026, 3, 4, 9, 0, 0, 0, berlin), "09:00:30": time.Date(2026, 3, 4, 9, 0, 30, 0, berlin),
		"2026-01-02T15:04:05Z": time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC), "10m": now.Add(-10 * time.Minute),
		"2026-01-02 15:04": time.Date(2026, 1, 2, 15, 4, 0, 0, berlin), "2026-01-02": time.Date(2026, 1, 2, 0, 0, 0, 0, berlin), "": {},
	} {
		got, err := parseTime("--since", text, now)
		require.NoError(t, err)
		require.True(t, want.Equal(got), "%s: %v", text, got)
	}
	for _, text := range []string{"yesterday", "25:00", "-5m"} {
		_, err := parseTime("--since", text, now)
		require.ErrorContains(t, err, "--since", text)
	}
}
