package operation

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/suite"
)

// replay plays events through and says what cannot have been: two holders at a time, a token that does not
// rise, news of a lock that is not there.
func replay(events []suite.Event) (faults []string) {
	held, highest := make(map[string]suite.Event), make(map[string]uint64)
	var before suite.Event
	for i, e := range events {
		fault := func(what string) {
			faults = append(faults, fmt.Sprintf("%s: %+v, where there is %+v", what, e, held[e.Path]))
		}
		if i > 0 && e.Number != before.Number+1 {
			fault("not the next event")
		}
		if e.Timestamp.Before(before.Timestamp) {
			fault("goes back in time")
		}
		before = e
		now, taken := held[e.Path]
		switch e.Event {
		case "lock_acquired":
			told := taken && now.Token == e.Token && now.Format == "none"
			if taken && !told {
				fault("overlap")
			}
			if !told && e.Token <= highest[e.Path] {
				fault("token does not rise")
			}
			held[e.Path], highest[e.Path] = e, e.Token
		case "lock_stolen":
			if !taken || e.Previous == nil || e.Previous.Token != now.Token {
				fault("stolen from somebody else")
			}
			delete(held, e.Path)
		case "lock_released", "lock_removed":
			if now.Token != e.Token {
				fault("not this one's")
			}
			delete(held, e.Path)
		case "lock_stale", "removal_refused":
			if now.Token != e.Token {
				fault("not this one's")
			}
		case "host_unreachable", "host_back", "host_forgotten", "session_ended", "alarm_raised", "alarm_cleared", "rule_set",
			"rule_deleted", "member_added", "member_removed", "host_joined", "host_revoked", "token_created", "token_revoked",
			"join_refused", "authority_added", "authority_dropped":
			if e.Path != "" {
				fault("of no lock")
			}
		default:
			fault("unknown")
		}
	}
	return faults
}

func TestReplayFindsFaults(t *testing.T) {
	play := func(kinds ...string) []string {
		var events []suite.Event
		for i, kind := range kinds {
			e := suite.Event{Number: uint64(i + 1), Path: "lock"}
			_, err := fmt.Sscan(strings.ReplaceAll(kind, "=", " "), &e.Event, &e.Token)
			require.NoError(t, err)
			if e.Event == "lock_stolen" {
				e.Previous = &suite.Event{Token: e.Token - 1}
			}
			events = append(events, e)
		}
		return replay(events)
	}
	require.Empty(t, play("lock_acquired=1", "removal_refused=1", "lock_released=1", "lock_acquired=2", "lock_stale=2",
		"lock_removed=2", "lock_acquired=3", "lock_stolen=4", "lock_acquired=4"))
	for _, bad := range [][]string{
		{"lock_acquired=1", "lock_acquired=2"},
		{"lock_acquired=1", "lock_acquired=1"},
		{"lock_acquired=2", "lock_released=2", "lock_acquired=2"},
		{"lock_acquired=1", "lock_released=2"},
		{"lock_stale=1"},
		{"lock_acquired=1", "lock_stolen=3"},
	} {
		require.NotEmpty(t, play(bad...), "%q", bad)
	}
	require.NotEmpty(t, replay([]suite.Event{{Number: 1, Event: "host_back"}, {Number: 3, Event: "host_back"}}))
	later := suite.Event{Number: 1, Event: "host_back", Timestamp: time.Unix(1, 0)}
	require.NotEmpty(t, replay([]suite.Event{later, {Number: 2, Event: "host_back"}}))
}

// TestAuditTellsTheStory has workers fight for locks while leaders die and all servers are restarted, and
// finds it all in the events.
func TestAuditTellsTheStory(t *testing.T) {
	t.Parallel()
	c := suite.StartCluster(t, 3)
	var on []*hosts.Host
	for _, name := range []string{"m1", "m2"} {
		g := c.AddGuest(t, name)
		g.Start(t)
		on = append(on, g.Host, g.Host)
	}
	on[0].MustRun(t, "mkdir", c.Path("semaphore"), c.Path("pid"))
	c.Nodes[0].SetRule(t, "semaphore/*", "--stale-after", "1s")
	var all []*suite.Breakers
	for _, format := range []string{"semaphore", "pid"} {
		all = append(all, suite.StartBreakers(t, nil, format, c.Path(format), filepath.Join(c.Net.Dir(), format), on...))
	}
	awaitMore := func() {
		t.Helper()
		for _, b := range all {
			b.AwaitTakeovers(t, b.Takeovers(t)+10)
		}
	}
	awaitMore()
	leader := c.Leader()
	leader.Kill()
	awaitMore()
	leader.Start(t)
	for _, n := range c.Nodes {
		n.Kill()
	}
	for _, n := range c.Nodes {
		n.Launch()
	}
	for _, n := range c.Nodes {
		n.AwaitReady(t)
	}
	awaitMore()
	for _, b := range all {
		require.Empty(t, b.Stop(t))
		require.Empty(t, b.Overlaps(t))
	}
	events := awaitEnd(t, c, "semaphore", "pid")
	c.RequireSameState(t)
	require.EqualValues(t, 1, events[0].Number)
	require.Empty(t, replay(events))
	for _, n := range c.Nodes {
		require.Equal(t, events, n.Events(t), n.Name)
		hosts.Eventually(t, "all events are in the file on "+n.Name, func() (string, bool) {
			text, err := os.ReadFile(filepath.Join(n.Data, "audit.jsonl"))
			require.NoError(t, err)
			written := suite.ParseEvents(t, string(text[:strings.LastIndex("\n"+string(text), "\n")]))
			if len(written) < len(events) {
				return fmt.Sprintf("%d events", len(written)), false
			}
			require.Equal(t, events, written)
			return "", true
		})
	}
	for _, format := range []string{"semaphore", "pid"} {
		acquired := 0
		for _, e := range events {
			if e.Event == "lock_acquired" && strings.HasPrefix(e.Path, format+"/") {
				acquired++
			}
		}
		entered := 0
		for i := range all[0].Locks {
			log, err := os.ReadFile(filepath.Join(c.Net.Dir(), format, fmt.Sprint(i)))
			require.NoError(t, err)
			entered += strings.Count(string(log), "enter ")
		}
		require.Equal(t, entered, acquired, "%s locks that were had", format)
	}
}

// awaitEnd answers all events once nothing more can come of the locks that nobody has left in some directories: of each it is
// told that it is stale.
func awaitEnd(t *testing.T, c *suite.Cluster, dirs ...string) (events []suite.Event) {
	t.Helper()
	hosts.Eventually(t, "the events of all locks that are left", func() (string, bool) {
		events = c.Nodes[0].Events(t)
		last := make(map[string]string)
		for _, e := range events {
			last[e.Path] = e.Event
		}
		for _, dir := range dirs {
			for _, name := range strings.Fields(c.Nodes[0].Host.MustRun(t, "ls", c.Path(dir))) {
				if path := dir + "/" + name; last[path] != "lock_stale" {
					return path + ": " + last[path], false
				}
			}
		}
		return "", true
	})
	return events
}

// TestEvents looks at the story of one lock in all ways that there are.
func TestEvents(t *testing.T) {
	t.Parallel()
	c := suite.StartCluster(t, 2)
	a, b := c.Nodes[0], c.Nodes[1]
	follower := b.Host.Start(c.Program, append([]string{"events", "--follow", "--json"}, b.Asked()...)...)
	reader := b.Host.Start("cat", c.Path(".lockfs/events"))
	told := func(words ...string) {
		t.Helper()
		for _, p := range []*hosts.Process{follower, reader} {
			for _, word := range words {
				require.NoError(t, p.WaitOutput(word))
			}
		}
	}
	s, other := suite.StartShell(t, a.Host, c.Mount), suite.StartShell(t, b.Host, c.Mount)
	hosts.Eventually(t, "the reader reads", func() (string, bool) {
		c.RequireService(t, a)
		return reader.Log(), reader.Stdout() != ""
	})
	s.Must("set -C; " + suite.SemaphoreContent + " > lock.short; set +C")
	told("lock.short")
	content := s.Must("cat lock.short")
	pid := strings.TrimSpace(s.Must("echo $$"))
	token := c.Token(t, a.Host, "lock.short")
	other.Fails("rm lock.short", "Device or resource busy")
	told("removal_refused")
	a.SetRule(t, "*.short", "--stale-after", "1s")
	c.AwaitState(t, b.Host, "lock.short", "stale")
	told("lock_stale")
	other.Must(`printf 'pid=%d\ntimestamp=33333333333\n' $$ > mine; mv mine lock.short`)
	told("lock_stolen")
	stolen := c.Token(t, b.Host, "lock.short")
	other.Must("mv lock.short moved.short")
	other.Must("mv moved.short lock.short; rm lock.short")

	events := a.Events(t)
	require.Empty(t, replay(events))
	want := []string{
		"lock_acquired", "removal_refused", "lock_stale", "lock_stolen", "lock_acquired", "lock_released", "lock_acquired",
		"lock_released",
	}
	require.Equal(t, want, suite.Story(events, "lock.short"))
	require.Equal(t, []string{"lock_acquired", "lock_released"}, suite.Story(events, "moved.short"))
	refused := suite.LastEvent(t, events, "removal_refused", "lock.short")
	assert.Equal(t, "lock.short", refused.Name)
	assert.Equal(t, token, refused.Token)
	assert.Equal(t, "semaphore", refused.Format)
	assert.Equal(t, pid, refused.Holder)
	assert.Equal(t, "a", refused.Host)
	assert.Equal(t, pid, fmt.Sprint(refused.PID))
	assert.NotEmpty(t, refused.Reason)
	require.NotNil(t, refused.By)
	assert.Equal(t, "b", refused.By.Host)
	steal := suite.LastEvent(t, events, "lock_stolen", "lock.short")
	assert.Equal(t, stolen, steal.Token)
	require.NotNil(t, steal.Previous)
	assert.Equal(t, suite.Event{Token: token, Format: "semaphore", Holder: pid, Host: "a", PID: refused.PID}, *steal.Previous)
	assert.Equal(t, suite.SHA256Of(content), steal.PreviousHash)
	assert.NotEmpty(t, suite.LastEvent(t, events, "lock_stale", "lock.short").Reason)

	last := events[len(events)-1]
	told(fmt.Sprintf(`"number":%d,`, last.Number))
	require.Equal(t, events, suite.ParseEvents(t, follower.Stdout()))
	require.Subset(t, events, suite.ParseEvents(t, reader.Stdout()))
	middle := events[len(events)/2]
	require.Equal(t, events[len(events)/2:], b.Events(t, "--since", fmt.Sprint(middle.Number)))
	require.Equal(t, events, b.Events(t, "--since", events[0].Timestamp.Add(-time.Hour).Format(time.RFC3339)))
	for _, e := range b.Events(t, "--since", steal.Timestamp.Format(time.RFC3339Nano)) {
		require.False(t, e.Timestamp.Before(steal.Timestamp))
	}
	require.Empty(t, b.Events(t, "--since", time.Now().Add(time.Hour).UTC().Format(time.RFC3339)))
	_, err := b.Lockfs("events", "--since", "yesterday")
	require.ErrorContains(t, err, "yesterday")
	text, err := b.Lockfs("events")
	require.NoError(t, err)
	for _, name := range want {
		require.Contains(t, text, name, "for people")
	}
	require.NoError(t, follower.Stop(), "SIGTERM")
	reader.Kill()
}
