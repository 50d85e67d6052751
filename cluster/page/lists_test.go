package page

import (
	"context"
	"fmt"
	"html"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/health"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/storepb"
)

// lockAt is a lock in the root with a path; by gives its holder.
func lockAt(path, state string, by *storepb.Facts) *storepb.Lock {
	return &storepb.Lock{
		Parent: 1, Name: []byte(path), Path: []byte(path), State: state, Because: "its format", Token: 1, Acquired: 1, Attr: new(storepb.Attr),
		Facts: by,
	}
}

// show returns a page of a server, as root.
func show(t testing.TB, front rpc.Node, target string) string {
	t.Helper()
	server := New(Config{Front: front, Administers: func(rpc.Caller) bool { return true }, Logger: strict(t)})
	answer := httptest.NewRecorder()
	request := httptest.NewRequest(http.MethodGet, target, nil)
	server.SocketHandler().ServeHTTP(answer, request.WithContext(rpc.WithCaller(t.Context(), rpc.Caller{Role: rpc.RoleUser})))
	require.Equal(t, http.StatusOK, answer.Code, "%s: %s", target, answer.Body)
	return answer.Body.String()
}

var (
	tagsOf  = regexp.MustCompile(`<[^>]*>`)
	rowOf   = regexp.MustCompile(`(?s)<tr data-key=.*?</tr>`)
	spaceOf = regexp.MustCompile(`\s+`)
)

func textOf(markup string) string {
	return strings.TrimSpace(spaceOf.ReplaceAllString(html.UnescapeString(tagsOf.ReplaceAllString(markup, " ")), " "))
}

// rowsOf returns the first cell of each row as text.
func rowsOf(page string) (texts []string) {
	for _, row := range rowOf.FindAllString(page, -1) {
		cell, _, _ := strings.Cut(row, "</td>")
		texts = append(texts, strings.ReplaceAll(textOf(cell), "/ ", "/"))
	}
	return texts
}

// TestNumbersInPathsAreInTheirOrder: job-2 comes before job-10.
func TestNumbersInPathsAreInTheirOrder(t *testing.T) {
	front := new(still)
	for _, n := range []int{10, 2, 1, 20, 3} {
		front.locks = append(front.locks, lockAt(fmt.Sprintf("job-%d", n), "held", nil))
	}
	want := []string{"job-1", "job-2", "job-3", "job-10", "job-20"}
	require.Equal(t, want, rowsOf(show(t, front, "/")))
	require.Equal(t, want, rowsOf(show(t, front, "/?sort=path")))
}

// TestOnlyTroubleHasASecondLine: a healthy lock has one, whatever makes it a lock.
func TestOnlyTroubleHasASecondLine(t *testing.T) {
	stale := lockAt("stale.lock", "stale", &storepb.Facts{Format: storepb.Format_TOWER})
	stale.Reason = "its time was over at 2026-03-01T09:14:02.518273645Z"
	front := &still{locks: []*storepb.Lock{
		lockAt("held.lock", "held", &storepb.Facts{Format: storepb.Format_PID, Pid: 7, Host: "a"}),
		lockAt("odd.lock", "held", &storepb.Facts{Format: storepb.Format_SEMAPHORE, Invalid: "the timestamp is no number"}), stale,
	}}
	page := show(t, front, "/")
	require.Equal(t, []string{
		"stale.lock its time was over at 2026-03-01T09:14:02Z", "odd.lock invalid: the timestamp is no number", "held.lock",
	}, rowsOf(page))
	require.NotContains(t, page, "518273645", "nanoseconds are for programs")
}

// TestEachFormatHasAHolder: its name, its process, or the process that created the name.
func TestEachFormatHasAHolder(t *testing.T) {
	made := lockAt("made.lock", "held", &storepb.Facts{Host: "b"})
	made.MadeBy, made.MadeOn = 12, "c"
	flocked := lockAt("flock", "held", nil)
	flocked.Because, flocked.AdvisoryLocks = "", []*storepb.AdvisoryLock{{Pid: 9, Host: "d"}}
	for want, lock := range map[string]*storepb.Lock{
		"req-1, pid 3 on a":      lockAt("x", "held", &storepb.Facts{Format: storepb.Format_TOWER, Holder: "req-1", Pid: 3, Host: "a"}),
		"pid 4 on a":             lockAt("x", "held", &storepb.Facts{Format: storepb.Format_SEMAPHORE, Holder: "4", Pid: 4, Host: "a"}),
		"w1 on a":                lockAt("x", "held", &storepb.Facts{Format: storepb.Format_SWARM, Holder: "w1", Host: "a"}),
		"amy, pid 5 on a":        lockAt("x", "held", &storepb.Facts{Format: storepb.Format_BEADS, Holder: "amy", Pid: 5, Host: "a"}),
		"pid 6 on a":             lockAt("x", "held", &storepb.Facts{Format: storepb.Format_PID, Pid: 6, Host: "a"}),
		"own on a":               lockAt("x", "held", &storepb.Facts{Format: storepb.Format_FORRST, Holder: "own", Host: "a"}),
		"created by pid 12 on c": made,
		"pid 9 on d":             flocked,
	} {
		d := describe(lock)
		require.Equal(t, want, d.Who()+" on "+d.Host)
	}
}

// TestAnExpiryInThePastIsNoFuture on the page, in whatever place.
func TestAnExpiryInThePastIsNoFuture(t *testing.T) {
	now := moment(time.Now().UnixNano())
	require.Equal(t, "in 1m 30s", (now + 90e9).Distance(now))
	require.Equal(t, "1m 30s ago", (now - 90e9).Distance(now))
	require.Equal(t, "0s ago", now.Distance(now))
	expired := lockAt("expired.lock", "stale", &storepb.Facts{Format: storepb.Format_TOWER, ExpiresAt: int64(now) - 3725e9})
	live := lockAt("live.lock", "held", &storepb.Facts{Format: storepb.Format_TOWER, ExpiresAt: int64(now) + 3725e9})
	page := show(t, &still{locks: []*storepb.Lock{expired, live}}, "/")
	require.Regexp(t, `<td data-label="Expires" class="n"><time data-until [^>]* class="past">1h 2m ago</time>`, page)
	require.Regexp(t, `<td data-label="Expires" class="n"><time data-until [^>]*[^"]*">in 1h \dm</time>`, page)
}

// teams are 120 locks in 3 directories, on 2 hosts and on none.
func teams() *still {
	front := new(still)
	for i := range 120 {
		host := []string{"h1", "h2", ""}[i%3]
		l := lockAt(fmt.Sprintf("team-%d/%d.lock", i%3+8, i), "held", &storepb.Facts{Format: storepb.Format_SWARM, Holder: "w", Host: host})
		l.Name = fmt.Append(nil, i)
		front.locks = append(front.locks, l)
	}
	front.locks[2].State = "stale"
	return front
}

// TestLocksComeInPages of 50, with links to the pages before and after.
func TestLocksComeInPages(t *testing.T) {
	front := teams()
	first, second, third := show(t, front, "/?sort=path"), show(t, front, "/?page=2&sort=path"), show(t, front, "/?page=3&sort=path")
	require.Len(t, rowsOf(first), 50)
	require.Len(t, rowsOf(second), 50)
	require.Len(t, rowsOf(third), 20)
	seen := make(map[string]bool)
	for _, page := range []string{first, second, third} {
		for _, row := range rowsOf(page) {
			seen[row] = true
		}
	}
	require.Len(t, seen, 120)
	require.Contains(t, textOf(first), "1–50 of 120 locks")
	require.Contains(t, textOf(third), "101–120 of 120 locks")
	require.NotContains(t, first, `rel="prev"`)
	require.Contains(t, first, `rel="next" href="/?page=2&amp;sort=path"`)
	require.Contains(t, second, `rel="prev" href="/?page=1&amp;sort=path"`)
	require.NotContains(t, third, `rel="next"`)
	require.Equal(t, rowsOf(third), rowsOf(show(t, front, "/?page=99&sort=path")))
	require.NotContains(t, show(t, front, "/?q=team-9"), `class="pager"`, "one page needs none")
	require.Contains(t, textOf(show(t, front, "/?q=team-9")), "40 locks of 120")
}

// TestLocksComeInGroups by directory or host, with trouble first, and each heading leads to its group.
func TestLocksComeInGroups(t *testing.T) {
	front := teams()
	headings := func(page string) (texts []string) {
		for _, row := range rowOf.FindAllString(page, -1) {
			if strings.Contains(row, `class="group"`) {
				texts = append(texts, textOf(row))
			}
		}
		return texts
	}
	require.Equal(t, []string{"team-10 40 locks 1 stale", "team-8 40 locks"}, headings(show(t, front, "/?group=directory")))
	require.Equal(t, []string{"team-8 40 locks", "team-9 40 locks"}, headings(show(t, front, "/?group=directory&sort=path")))
	require.Equal(t, []string{"team-9 40 locks", "team-10 40 locks 1 stale"}, headings(show(t, front, "/?group=directory&sort=path&page=2")))
	require.Equal(t, []string{"no host 40 locks 1 stale", "h1 40 locks"}, headings(show(t, front, "/?group=host")))
	require.Contains(t, show(t, front, "/?group=directory"), `href="/?group=directory&amp;path=team-8"`)
	require.Contains(t, show(t, front, "/?group=host"), `href="/?group=host&amp;host=h1"`)
	require.Len(t, rowsOf(show(t, front, "/?host=h1")), 40)
	require.Len(t, rowsOf(show(t, front, "/?path=team-8")), 40)
	require.Equal(t, []string{"top directory 1 lock"}, headings(show(t, &still{locks: []*storepb.Lock{lockAt("a", "held", nil)}}, "/?group=directory")))
}

// TestAnEmptyListHasItsReason: there are no locks, or the filter leaves out all of them.
func TestAnEmptyListHasItsReason(t *testing.T) {
	none, some := new(still), teams()
	require.Contains(t, textOf(show(t, none, "/")), "No locks yet.")
	require.NotContains(t, textOf(show(t, none, "/")), "No lock matches")
	require.Contains(t, textOf(show(t, some, "/?q=nothing")), "No lock matches this filter. Show all locks")
	require.NotContains(t, textOf(show(t, some, "/?q=nothing")), "No locks yet.")
	require.NotContains(t, textOf(show(t, some, "/")), "No lock")
	require.Contains(t, textOf(show(t, none, "/events")), "No events yet.")
	require.Contains(t, textOf(show(t, none, "/events?kind=lock_stale")), "No event matches this filter.")
	require.Contains(t, textOf(show(t, none, "/alarms")), "No alarms.")
}

// TestTroubleHasOneText for screen readers, which changes only with the trouble.
func TestTroubleHasOneText(t *testing.T) {
	require.Empty(t, Banner{Health: health.Health{Confirmed: true, Voters: 3, Answering: 3}}.Trouble())
	trouble := Banner{
		Health: health.Health{Confirmed: true, Voters: 3, Answering: 2, Silent: []health.Voter{{Name: "c"}}}, Spread: 90 * time.Second,
		Silent: []string{"x", "y"}, Alarms: []string{"no_space: c has 3 MB", "two_hosts: 10.0.0.1"},
	}
	require.Equal(t, "1 of 3 voters do not answer; clocks differ by more than a second; silent hosts: x, y; alarms: no space, two hosts", trouble.Trouble())
	require.Equal(t, trouble.Trouble(), func() string { trouble.Spread += time.Millisecond; return trouble.Trouble() }())
	lost := Banner{Health: health.Of([]health.Voter{{Name: "a"}, {Name: "b", Failure: "connection refused"}}, errNoAnswer)}
	require.Contains(t, lost.Trouble(), "NO QUORUM: 1 of 2 voters answers (b: connection refused)")
	page := show(t, new(still), "/")
	require.Contains(t, page, `role="alert" data-block="trouble">`)
	require.Contains(t, page, `role="status" data-block="lock-trouble">No lock is in trouble.`)
	require.Contains(t, show(t, teams(), "/"), `data-block="lock-trouble">Locks in trouble: 1 stale.`)
}

// log is a cluster with events and alarms.
type log struct {
	still
	events []*storepb.Event
	alarms []*storepb.Alarm
	asked  []*storepb.ListEvents
}

func (l *log) Execute(ctx context.Context, req *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
	result := &storepb.Result{Index: 1, LastEvent: uint64(len(l.events))}
	switch query := req.GetQuery().GetQuery().(type) {
	case *storepb.Query_ListEvents:
		l.asked = append(l.asked, proto.CloneOf(query.ListEvents))
		for i := len(l.events) - 1; i >= 0 && len(result.Events) < int(query.ListEvents.GetLimit()); i-- {
			if l.events[i].GetNumber() < query.ListEvents.GetBefore() {
				result.Events = append(result.Events, l.events[i])
			}
		}
	case *storepb.Query_ListAlarms:
		result.Alarms = l.alarms
	default:
		return l.still.Execute(ctx, req)
	}
	return &clusterpb.ExecuteReply{Result: result}, nil
}

// TestAlarmsAreListed and the pills above each page lead to the lists behind them.
func TestAlarmsAreListed(t *testing.T) {
	front := &log{alarms: []*storepb.Alarm{{Number: 41, Kind: "no_space", Name: "c", Since: 1, Text: "c has 3 MB"}, {Number: 42, Kind: "two_hosts", Since: 1, Text: "two of x"}}}
	page := show(t, front, "/alarms")
	require.Contains(t, textOf(page), "41 no space c")
	require.Contains(t, textOf(page), "two of x with lockfs alarm clear 42")
	require.Contains(t, textOf(page), "c has 3 MB by itself")
	for pill, address := range map[string]string{"Leader": "/members", "Quorum": "/members", "Clocks": "/hosts", "Silent hosts": "/hosts", "Alarms": "/alarms"} {
		require.Regexp(t, `<a class="pill [a-z]+" href="`+address+`"><b>`+pill+`</b>`, page)
	}
	require.Regexp(t, `<a class="pill bad" href="/alarms"><b>Alarms</b> no space, two hosts</a>`, page)
}

// TestEventsAreFilteredAndPaged by the cluster, words by the page.
func TestEventsAreFilteredAndPaged(t *testing.T) {
	front := new(log)
	for i := range 130 {
		e := &storepb.Event{Number: uint64(i + 1), Event: "lock_acquired", Path: fmt.Appendf(nil, "l%d", i+1), Token: 1, Host: "a", Time: 1, By: &storepb.Caller{Host: "b", Uid: 4321}}
		if i%26 == 0 {
			e.Reason = "rare, at 2026-03-01T09:14:02.518273645Z"
		}
		front.events = append(front.events, e)
	}
	first := show(t, front, "/events?kind=lock_acquired&path=/d/&host=a")
	asked := front.asked[0]
	require.Equal(t, []string{"lock_acquired"}, asked.GetKinds())
	require.Equal(t, "d", string(asked.GetBelow()))
	require.Equal(t, "a", asked.GetHost())
	require.EqualValues(t, uint64(math.MaxUint64), asked.GetBefore())
	require.Len(t, rowsOf(first), 50)
	require.Equal(t, "130", rowsOf(first)[0])
	require.Contains(t, first, `rel="next" href="/events?before=81&amp;host=a&amp;kind=lock_acquired&amp;path=d"`)
	require.NotContains(t, first, `rel="prev"`)
	require.Contains(t, textOf(first), "uid 4321 on b")
	second := show(t, front, "/events?before=81")
	require.Equal(t, "80", rowsOf(second)[0])
	require.Contains(t, second, `rel="prev" href="/events?"`)
	require.NotContains(t, show(t, front, "/events?before=51"), `rel="next"`)
	rare := show(t, front, "/events?q=rare")
	require.Equal(t, []string{"105", "79", "53", "27", "1"}, rowsOf(rare))
	require.NotContains(t, rare, "518273645", "nanoseconds are for programs")
}

var eventName = regexp.MustCompile(`\tevent\w+\s+= "(\w+)"`)

// TestEachKindOfEventCanBeSelected, and no other.
func TestEachKindOfEventCanBeSelected(t *testing.T) {
	source, err := os.ReadFile("../../raftstore/namespace/event.go")
	require.NoError(t, err)
	var want, got []string
	for _, name := range eventName.FindAllSubmatch(source, -1) {
		want = append(want, string(name[1]))
	}
	for _, group := range eventKinds {
		got = append(got, group.Kinds...)
	}
	require.Greater(t, len(want), 20)
	require.ElementsMatch(t, want, got)
}

// TestUsersHaveNamesBesideTheirUids if this host knows them.
func TestUsersHaveNamesBesideTheirUids(t *testing.T) {
	known := new(users)
	require.Equal(t, "root (0)", known.name(0))
	require.Equal(t, "uid 4294967294", known.name(math.MaxUint32-1))
	require.Equal(t, "root (0)", known.name(0))
}

// TestAChartHasAxesWithUnits and round labels, and a legend with the newest values.
func TestAChartHasAxesWithUnits(t *testing.T) {
	samples := []Sample{{CommitP50: 0.0012, CommitP99: 0.0034, Lag: 3}, {CommitP50: 0.001, CommitP99: 0.0042}}
	drawn := charts(samples)
	require.Len(t, drawn, 3)
	commit, lag := drawn[0], drawn[2]
	require.Equal(t, "5 ms", commit.Top)
	require.Equal(t, "2.5 ms", commit.Half)
	require.Equal(t, []string{"p50 1 ms", "p99 4.2 ms"}, []string{commit.Lines[0].Kind + " " + commit.Lines[0].Newest, commit.Lines[1].Kind + " " + commit.Lines[1].Newest})
	require.Equal(t, "236.0,25.6 238.0,25.6 240.0,12.8 ", commit.Lines[1].Points)
	require.Equal(t, "Commit time over the last hour: now p50 1 ms, p99 4.2 ms, at most 4.2 ms", commit.Says)
	require.Equal(t, "10 entries", lag.Top)
	require.Equal(t, "0 entries", lag.Lines[0].Newest)
	require.Equal(t, "Fsync time over the last hour: no measurements yet", charts(nil)[1].Says)
	for v, end := range map[float64]float64{1: 1, 1.1: 2, 3: 5, 6: 10, 0.0042: 0.005, 0.02: 0.02, 1500: 2000} {
		require.InEpsilon(t, end, axisEnd(v), 1e-9, v)
	}
	require.Equal(t, []string{"1", "999", "1,000", "1,234,567"}, []string{thousands(1), thousands(999), thousands(1000), thousands(1234567)})
}
