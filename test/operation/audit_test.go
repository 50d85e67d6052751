package operation

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// verifyAudit has the program check logs, and returns what it found.
func verifyAudit(t *testing.T, c *testcluster.Cluster, args ...string) (found audited) {
	t.Helper()
	text, _ := c.Nodes[0].Host.Run(c.Program, append([]string{"audit", "verify", "--json"}, args...)...)
	require.NoError(t, json.Unmarshal([]byte(text), &found), text)
	return found
}

// audited is what `lockfs audit verify --json` says.
type audited struct {
	Proven   bool `json:"proven"`
	Whole    bool `json:"whole"`
	Events   int  `json:"events"`
	Compared int  `json:"compared"`
	Problems []struct {
		Kind string `json:"kind"`
		Log  string `json:"log"`
		Text string `json:"text"`
	} `json:"problems"`
	Contradictions []struct {
		Path  string `json:"lock_path"`
		Why   string `json:"why"`
		Piece []struct {
			Text string `json:"text"`
		} `json:"piece"`
	} `json:"contradictions"`
	Notes []string `json:"notes"`
	Holds []struct {
		Token uint64 `json:"token"`
	} `json:"holds"`
}

// TestAuditTellsTheStory has workers fight for locks while leaders die and all servers are restarted, and
// finds it all in the events.
func TestAuditTellsTheStory(t *testing.T) {
	t.Parallel()
	c := testcluster.StartCluster(t, 3)
	var on []*hosts.Host
	for _, name := range []string{"m1", "m2"} {
		g := c.AddGuest(t, name)
		g.Start(t)
		on = append(on, g.Host, g.Host)
	}
	on[0].MustRun(t, "mkdir", c.Path("semaphore"), c.Path("pid"))
	c.Nodes[0].SetRule(t, "semaphore/*", "--stale-after", "1s")
	var all []*testcluster.Breakers
	for _, format := range []string{"semaphore", "pid"} {
		all = append(all, testcluster.StartBreakers(t, nil, format, c.Path(format), filepath.Join(c.Net.Dir(), format), on...))
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
	for _, n := range c.Nodes {
		require.Equal(t, events, n.Events(t), n.Name)
		hosts.Eventually(t, "all events are in the file on "+n.Name, func() (string, bool) {
			text, err := os.ReadFile(filepath.Join(n.Data, "audit.jsonl"))
			require.NoError(t, err)
			written := testcluster.ParseEvents(t, string(text[:strings.LastIndex("\n"+string(text), "\n")]))
			if len(written) < len(events) {
				return fmt.Sprintf("%d events", len(written)), false
			}
			require.Equal(t, events, written)
			return "", true
		})
	}
	requireTampering(t, c, len(events))
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

// requireTampering requires that the logs of all servers fit together, and that each change of a log is found.
func requireTampering(t *testing.T, c *testcluster.Cluster, events int) {
	t.Helper()
	var logs []string
	for _, n := range c.Nodes {
		logs = append(logs, n.Data)
	}
	found := verifyAudit(t, c, logs...)
	require.True(t, found.Proven, "%+v", found)
	require.True(t, found.Whole)
	require.GreaterOrEqual(t, found.Events, events)
	require.GreaterOrEqual(t, found.Compared, events)
	page := filepath.Join(c.Net.Dir(), "page.html")
	one := verifyAudit(t, c, slices.Concat(logs, []string{"--path", "semaphore/0", "--html", page})...)
	require.True(t, one.Proven)
	require.NotEmpty(t, one.Holds)
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(text), "no two holders of semaphore/0")
	require.NotRegexp(t, "(?i)(src|href)=", string(text), "it needs nothing else")

	whole, err := os.ReadFile(filepath.Join(c.Nodes[1].Data, "audit.jsonl"))
	require.NoError(t, err)
	lines := strings.SplitAfter(strings.TrimSuffix(string(whole), "\n"), "\n")
	middle := len(lines) / 2
	require.Contains(t, lines[middle], `"timestamp":"2`)
	cluster := strings.Index(lines[0]+lines[1]+lines[2]+lines[3], "cluster_begun")
	require.GreaterOrEqual(t, cluster, 0, "a log begins with what it is of: %q", lines[:4])
	for name, test := range map[string]struct {
		log  []string
		kind string
	}{
		"removed":   {slices.Delete(slices.Clone(lines), middle, middle+1), "missing"},
		"changed":   {slices.Concat(lines[:middle], []string{strings.Replace(lines[middle], `"timestamp":"2`, `"timestamp":"1`, 1)}, lines[middle+1:]), "changed"},
		"reordered": {slices.Concat(lines[:middle], []string{lines[middle+1], lines[middle]}, lines[middle+2:]), "moved"},
		"repeated":  {slices.Concat(lines[:middle], lines[middle-1:]), "repeated"},
	} {
		file := filepath.Join(c.Net.Dir(), name+".jsonl")
		require.NoError(t, os.WriteFile(file, []byte(strings.Join(test.log, "")), 0o600))
		found := verifyAudit(t, c, logs[0], file, logs[2])
		require.Len(t, found.Problems, 1, "%s: %+v", name, found.Problems)
		require.Equal(t, test.kind, found.Problems[0].Kind)
		require.Equal(t, file, found.Problems[0].Log)
		require.Empty(t, found.Contradictions, "the others have what is missing")
	}
	cut := filepath.Join(c.Net.Dir(), "cut.jsonl")
	require.NoError(t, os.WriteFile(cut, []byte(strings.Join(lines[:middle], "")), 0o600))
	found = verifyAudit(t, c, logs[0], cut)
	require.Empty(t, found.Problems)
	require.Contains(t, strings.Join(found.Notes, "\n"), cut+" ends with event ")
	_, err = c.Nodes[0].Host.Run(c.Program, "audit", "verify", filepath.Join(c.Net.Dir(), "changed.jsonl"))
	require.ErrorContains(t, err, "exit status 2")
}

// awaitEnd answers all events once nothing more can come of the locks that nobody has left in some directories: of each it is
// told that it is stale.
func awaitEnd(t *testing.T, c *testcluster.Cluster, dirs ...string) (events []testcluster.Event) {
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
	c := testcluster.StartCluster(t, 2)
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
	s, other := testcluster.StartShell(t, a.Host, c.Mount), testcluster.StartShell(t, b.Host, c.Mount)
	hosts.Eventually(t, "the reader reads", func() (string, bool) {
		c.RequireService(t, a)
		return reader.Log(), reader.Stdout() != ""
	})
	s.Must("set -C; " + testcluster.SemaphoreContent + " > lock.short; set +C")
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
	require.True(t, verifyAudit(t, c, a.Data).Proven)
	want := []string{
		"lock_acquired", "removal_refused", "lock_stale", "lock_stolen", "lock_acquired", "lock_released", "lock_acquired",
		"lock_released",
	}
	require.Equal(t, want, testcluster.Story(events, "lock.short"))
	require.Equal(t, []string{"lock_acquired", "lock_released"}, testcluster.Story(events, "moved.short"))
	refused := testcluster.LastEvent(t, events, "removal_refused", "lock.short")
	assert.Equal(t, "lock.short", refused.Name)
	assert.Equal(t, token, refused.Token)
	assert.Equal(t, "semaphore", refused.Format)
	assert.Equal(t, pid, refused.Holder)
	assert.Equal(t, "a", refused.Host)
	assert.Equal(t, pid, fmt.Sprint(refused.PID))
	assert.NotEmpty(t, refused.Reason)
	require.NotNil(t, refused.By)
	assert.Equal(t, "b", refused.By.Host)
	steal := testcluster.LastEvent(t, events, "lock_stolen", "lock.short")
	assert.Equal(t, stolen, steal.Token)
	require.NotNil(t, steal.Previous)
	assert.Equal(t, testcluster.Event{Token: token, Format: "semaphore", Holder: pid, Host: "a", PID: refused.PID}, *steal.Previous)
	assert.Equal(t, testcluster.SHA256Of(content), steal.PreviousHash)
	assert.NotEmpty(t, testcluster.LastEvent(t, events, "lock_stale", "lock.short").Reason)

	last := events[len(events)-1]
	told(fmt.Sprintf(`"number":%d,`, last.Number))
	require.Equal(t, events, testcluster.ParseEvents(t, follower.Stdout()))
	require.Subset(t, events, testcluster.ParseEvents(t, reader.Stdout()))
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
