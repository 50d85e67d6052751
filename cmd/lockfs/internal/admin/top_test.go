package admin

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"lockfs/cluster"
	"lockfs/cluster/clusterpb"
	"lockfs/cluster/health"
	"lockfs/cluster/page"
	"lockfs/raftstore/lockjson"
	"lockfs/raftstore/storepb"
)

func someLocks() []lockjson.Lock {
	return []lockjson.Lock{
		{Path: "a.lock", State: "held", Host: "web1"},
		{Path: "busy.lock", State: "held", Waiting: 1, Advisory: []lockjson.Advisory{{State: lockjson.AdvisoryHeld}, {State: lockjson.AdvisoryWaiting}}},
		{Path: "gone.lock", State: "unreachable", Host: "web2"},
		{Path: "old.lock", State: "stale", Host: "web1"},
	}
}

// topOf is a terminal of 100 columns and some lines that shows what was seen.
func topOf(lines int, seen desk) *top {
	seen.at = time.Unix(1, 0)
	slices.SortStableFunc(seen.locks, byTrouble)
	m := &top{look: func() desk { return seen }}
	m.Update(tea.WindowSizeMsg{Width: 100, Height: lines})
	m.Update(m.Init()())
	return m
}

// keys presses some, each a character or a name.
func (m *top) keys(names ...string) (last tea.Cmd) {
	named := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab}
	for _, key := range names {
		press := tea.KeyPressMsg{Code: named[key]}
		if press.Code == 0 {
			press = tea.KeyPressMsg{Code: rune(key[0]), Text: key}
		}
		_, last = m.Update(press)
	}
	return last
}

// first are the first words of the rows that are shown.
func (m *top) first() (words []string) {
	lines := strings.Split(m.text(), "\n")
	for _, line := range lines[len(m.banner())+2 : len(lines)-1] {
		word, _, _ := strings.Cut(line, " ")
		words = append(words, word)
	}
	return words
}

func TestTopShowsTroubleFirst(t *testing.T) {
	m := topOf(20, desk{banner: page.Banner{Leader: "a"}, locks: someLocks()})
	require.Equal(t, []string{"gone.lock", "old.lock", "busy.lock", "a.lock"}, m.first())
	for _, line := range strings.Split(m.text(), "\n") {
		require.LessOrEqual(t, len([]rune(line)), 100)
	}
	m.keys("j")
	require.Equal(t, "old.lock", m.first()[0])
	m.keys("/", "w", "e", "b", "1", "enter")
	require.Equal(t, []string{"old.lock", "a.lock"}, m.first())
	m.Update(desk{at: time.Unix(2, 0), err: errors.New("nobody leads")})
	require.Contains(t, m.text(), "nobody leads\nleader a")
	require.Equal(t, []string{"old.lock", "a.lock"}, m.first(), "what was seen last stays")
	require.Equal(t, tea.Quit(), m.keys("q")())
}

func TestTopHasTheBanner(t *testing.T) {
	node := func(name, state string) cluster.NodeStatus {
		return cluster.NodeStatus{Name: name, ID: name, Voter: true, Status: &clusterpb.StatusReply{
			Id: name, Name: name, State: state, Term: 3, LeaderId: "a", Insecure: true,
		}}
	}
	nodes := []cluster.NodeStatus{
		node("a", "leader"), node("b", "follower"),
		{Name: "c", Voter: true, Err: errors.New("silent")}, {Name: "d", Status: new(clusterpb.StatusReply)},
	}
	banner := bannerOf(summarize(health.Health{Confirmed: true, Voters: 3, Answering: 2}, nodes))
	require.Equal(t, []string{
		"leader a, term 3  quorum: 2 of 3 answer  clocks not known", "unreachable hosts: none", "alarms: none",
		"insecure: every program that reaches a server's port has all rights",
	}, topOf(20, desk{banner: banner}).banner())

	banner = page.Banner{Health: health.Health{Voters: 3, Answering: 1}, Spread: 1500 * time.Millisecond, Clocks: 4, Silent: []string{"w", "x"}, Alarms: []string{"no_space: a"}}
	m := topOf(20, desk{banner: banner})
	require.Equal(t, []string{
		"leader (unknown), term 0  no quorum: 1 of 3 answer  clocks 1.5 s apart", "UNREACHABLE HOSTS: w, x", "ALARMS: no_space: a",
	}, m.banner())
	m.Update(desk{at: time.Unix(2, 0), err: errors.New("nobody leads"), members: []nodeStatus{{Name: "a"}},
		banner: page.Banner{Leader: "b", Term: 4, Health: health.Health{Voters: 3, Answering: 2}}})
	require.Equal(t, []string{
		"nobody leads", "leader b, term 4  quorum: 2 of 3 answer  clocks 1.5 s apart", "UNREACHABLE HOSTS: w, x", "ALARMS: no_space: a",
	}, m.banner(), "of what only the leader knows, what was seen last")
}

func TestTopHasViews(t *testing.T) {
	now := time.Unix(1000, 0)
	expires := now.Add(90 * time.Second)
	over := now.Add(-time.Second)
	seen := desk{
		clusterTime: now,
		locks: []lockjson.Lock{
			{Path: "a.lock", State: "held", Holder: "me", Host: "web1", Token: 7, Age: 61, Expires: &expires},
			{Path: "busy.lock", State: "held", Expires: &over, Waiting: 2,
				Advisory: []lockjson.Advisory{{State: lockjson.AdvisoryWaiting}, {State: lockjson.AdvisoryInterrupted}}},
		},
		events: []*storepb.Event{
			{Number: 1, Event: "lock_acquired", Path: []byte("a.lock"), Token: 7, Host: "web1"},
			{Number: 2, Event: "lock_stale", Path: []byte("b\x1b")},
		},
		hosts:    []host{{Name: "web1", State: "reachable", Sessions: 1, Since: now}, {Name: "web2", State: "unreachable", Since: now}},
		sessions: []sessionRow{{Host: "web1", Silent: 1, ClockOffset: 0.25}},
		members: []nodeStatus{
			{Name: "a", State: "leader", CommitIndex: 10, AppliedIndex: 10}, {Name: "b", State: "follower", AppliedIndex: 4},
			{Name: "c", State: "unreachable", Error: "silent"},
		},
	}
	m := topOf(20, seen)
	require.Regexp(t, `\n\[1 locks\] .*\nPATH +STATE +WAITING +HOLDER +AGE +EXPIRES +TOKEN\n`+
		`busy.lock +held +2 +0s +over +0\na.lock +held +me on web1 +1m1s +in 1m30s +7\n`, m.text())
	m.keys("2")
	require.Regexp(t, `\[2 events\].*\nTIME +EVENT +PATH +DETAILS\n00:00:00 +lock_stale +"b\\x1b".*\n00:00:00 +lock_acquired +a.lock +token 7`, m.text())
	m.keys("tab")
	require.Regexp(t, `\[3 hosts\].*\nNAME .*\nweb1 +reachable +1970\S+ +1 +1s +\+0.250s\nweb2 +unreachable`, m.text())
	m.keys("tab")
	require.Regexp(t, `\[4 members\].*\nNAME .*\na +leader +0 +10 +10 +0\nb +follower +0 +0 +4 +6\nc +unreachable .*silent`, m.text())
	m.keys("/", "f", "o", "l", "enter")
	require.Equal(t, []string{"b"}, m.first())
	m.keys("/", "esc", "tab")
	require.Equal(t, []string{"busy.lock", "a.lock"}, m.first(), "tab comes round")

	low := topOf(7, seen)
	require.Len(t, low.first(), 1)
	require.Len(t, strings.Split(low.text(), "\n"), 7, "no line is left out that is shown")
}

func TestLookoutKeepsTheLastEvents(t *testing.T) {
	l := new(lookout)
	for number := range uint64(keptEvents + 3) {
		require.NoError(t, l.note([]*storepb.Event{{Number: number + 1}}))
	}
	require.Len(t, l.events, keptEvents)
	require.EqualValues(t, keptEvents+3, l.events[keptEvents-1].GetNumber())
}

func TestWatchingPrintsWhatHasChanged(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	locks, times := someLocks(), 0
	var out, notices bytes.Buffer
	list := func() ([]lockjson.Lock, error) {
		times++
		switch times {
		case 2:
			locks[0].Age = 5 // nothing else
		case 3:
			return nil, errors.New("nobody leads")
		case 4:
			locks = locks[1:]
		case 5:
			cancel()
		}
		return locks, nil
	}
	require.NoError(t, watchLocks(ctx, &out, &notices, false, list, func(context.Context) {}))
	require.Equal(t, 2, strings.Count(out.String(), "PATH"), out.String())
	require.Equal(t, 1, strings.Count(out.String(), "a.lock"))
	require.Contains(t, notices.String(), "nobody leads")
	require.ErrorContains(t, watchLocks(t.Context(), &out, &notices, true, func() ([]lockjson.Lock, error) { return nil, errors.New("never") }, nil), "never")
}
