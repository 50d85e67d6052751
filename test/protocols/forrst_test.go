package protocols

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// forrstCluster is a cluster whose servers have Forrst endpoints in front of one upstream server.
type forrstCluster struct {
	*testcluster.Cluster
	upstream *hosts.Process
}

const (
	forrstPort   = "7423"
	upstreamPort = "7500"
)

func startForrst(t testing.TB) *forrstCluster {
	t.Helper()
	c := testcluster.NewCluster(t, "--session-term", "2s", "--forrst-addr", "0.0.0.0:"+forrstPort)
	c.Secure = false // its clients come from other hosts, and have no certificates
	h := c.Net.Host("upstream")
	c.Flags = append(c.Flags, "--forrst-upstream", "http://"+h.Addr()+":"+upstreamPort+"/rpc")
	f := &forrstCluster{Cluster: c, upstream: h.Start("python3", testcluster.ClientPath(t, "upstream.py"), h.Addr(), upstreamPort)}
	require.NoError(t, f.upstream.WaitOutput("ready\n"))
	for range 3 {
		c.Add(t).Start(t)
	}
	return f
}

func forrstURL(n *testcluster.Node) string {
	return "http://" + n.Host.Addr() + ":" + forrstPort + "/forrst"
}

// forrstAnswer is a response, as far as tests use it.
type forrstAnswer struct {
	ID     string         `json:"id"`
	Result map[string]any `json:"result"`
	Errors []struct {
		Code string `json:"code"`
	} `json:"errors"`
	Extensions []struct {
		Data map[string]any `json:"data"`
	} `json:"extensions"`
	text   string
	replay bool // it says that it repeats what another attempt was answered
}

// code is the response's error, empty if it has none.
func (a forrstAnswer) code() string {
	if len(a.Errors) == 0 {
		return ""
	}
	return a.Errors[0].Code
}

func (a forrstAnswer) owner() string { return fmt.Sprint(a.Extensions[0].Data["owner"]) }

// forrstCall calls a function with the extension's options.
func forrstCall(id string, work float64, options string) string {
	return fmt.Sprintf(`{"protocol":{"name":"forrst","version":"0.1.0"},"id":%q,"call":{"function":"work","version":"1.0.0",`+
		`"arguments":{"work":%g}},"extensions":[{"urn":"urn:forrst:ext:atomicLock","options":%s}]}`, id, work, options)
}

func forrstSystem(id, function, arguments string) string {
	return fmt.Sprintf(`{"protocol":{"name":"forrst","version":"0.1.0"},"id":%q,"call":{"function":`+
		`"urn:cline:forrst:ext:atomic-lock:fn:%s","version":"1.0.0","arguments":%s}}`, id, function, arguments)
}

// begin sends a request to a node from another host. What it answers waits for the response.
func (c *forrstCluster) begin(t testing.TB, n *testcluster.Node, body string) (ended func() forrstAnswer) {
	t.Helper()
	const post = `
import sys, urllib.error, urllib.request
try:
    response = urllib.request.urlopen(urllib.request.Request(sys.argv[1], sys.argv[2].encode(), {"Content-Type": "application/json"}), timeout=60)
except urllib.error.HTTPError as error:
    response = error
print(response.headers.get("Forrst-Replay") == "true")
print(response.read().decode())`
	client := c.Net.Host("client").Start("python3", "-c", post, forrstURL(n), body)
	return func() forrstAnswer {
		t.Helper()
		require.NoError(t, client.Wait(), client.Log())
		replay, text, _ := strings.Cut(client.Stdout(), "\n")
		answer := forrstAnswer{text: text, replay: replay == "True"}
		require.NoError(t, json.Unmarshal([]byte(answer.text), &answer), answer.text)
		return answer
	}
}

func (c *forrstCluster) post(t testing.TB, n *testcluster.Node, body string) forrstAnswer {
	t.Helper()
	return c.begin(t, n, body)()
}

// calls lists the ids of the calls that have entered the upstream server, and requires that each left before
// the next one entered.
func (c *forrstCluster) calls(t testing.TB) (entered []string) {
	t.Helper()
	inside, token := "", 0
	text := c.upstream.Stdout()
	for line := range strings.Lines(text[:strings.LastIndexByte(text, '\n')+1]) {
		words := strings.Fields(line)
		switch words[0] {
		case "enter":
			require.Empty(t, inside, "%s overlaps with it", words[1])
			inside = words[1]
			entered = append(entered, inside)
			var next int
			_, err := fmt.Sscan(words[2], &next)
			require.NoError(t, err)
			require.Greater(t, next, token, "the token of %s", inside)
			token = next
		case "leave":
			require.Equal(t, inside, words[1])
			inside = ""
		}
	}
	return entered
}

// awaitLine waits until so many requests stand in line.
func (c *forrstCluster) awaitLine(t testing.TB, n *testcluster.Node, standing int) {
	t.Helper()
	hosts.Eventually(t, fmt.Sprint(standing, " in line"), func() (string, bool) {
		text, err := n.Host.Run("cat", c.Path(".lockfs/why/.forrst/.queue"))
		return text, err == nil && strings.Count(text, "fcntl, ") == standing
	})
}

// requireNoLocks waits until no host has a lock, and none is listed.
func (c *forrstCluster) requireNoLocks(t testing.TB) {
	t.Helper()
	for _, n := range c.Nodes {
		if n.Server == nil {
			continue
		}
		hosts.Eventually(t, "no locks on "+n.Name, func() (string, bool) {
			files, err := n.Host.Run("ls", c.Path(".forrst"))
			listed, errListed := n.Lockfs("locks", "--json")
			return fmt.Sprint(files, listed, err, errListed), files == "" && strings.TrimSpace(listed) == "[]" && err == nil
		})
	}
}

// TestForrst shows the locks of calls as files, on all hosts, and what the system functions make of them.
func TestForrst(t *testing.T) {
	t.Parallel()
	c := startForrst(t)
	a, b, d := c.Nodes[0], c.Nodes[1], c.Nodes[2]

	t.Run("a lock is a file", func(t *testing.T) {
		taken := c.post(t, a, forrstCall("keeps", 0, `{"key":"dir/x","ttl":{"value":1,"unit":"hour"},"auto_release":false}`))
		require.Empty(t, taken.code(), taken.text)
		const file, key = ".forrst/lock:work:dir%2Fx", "lock:work:dir/x"
		for _, n := range c.Nodes {
			require.Equal(t, filepath.Base(file)+"\n", n.Host.MustRun(t, "ls", c.Path(".forrst")))
			require.Contains(t, n.Host.MustRun(t, "cat", c.Path(file)), taken.owner())
			_, err := n.Host.Run("rm", "-f", c.Path(file))
			require.ErrorContains(t, err, "busy")
			listed, err := n.Lockfs("locks")
			require.NoError(t, err)
			require.Contains(t, listed, file+"  held   forrst  "+taken.owner())
			require.Equal(t, 2, strings.Count(listed, "\n"), "no bookkeeping: %s", listed)
			require.Equal(t, "LOCK_ACQUISITION_FAILED",
				c.post(t, n, forrstCall("refused", 0, `{"key":"dir/x","ttl":{"value":1,"unit":"hour"}}`)).code())
			status, err := c.command(n, "status", key)
			require.NoError(t, err)
			require.Contains(t, status, "is locked by "+taken.owner())
		}
		_, err := c.command(b, "release", key, "--owner", "somebody")
		require.ErrorContains(t, err, "exit status 78")
		_, err = c.command(b, "release", key, "--owner", taken.owner())
		require.NoError(t, err)
		_, err = c.command(d, "release", key, "--owner", taken.owner())
		require.ErrorContains(t, err, "LOCK_ALREADY_RELEASED")
		require.ErrorContains(t, err, "exit status 79")
		_, err = c.command(d, "force-release", key)
		require.ErrorContains(t, err, "LOCK_NOT_FOUND")
		status, err := c.command(a, "status", key, "--json")
		require.ErrorContains(t, err, "exit status 79")
		require.JSONEq(t, `{"state":"free","format":"forrst","path":".forrst/`+key+`","key":"`+key+`","locked":false}`, status)
		status, err = c.command(a, "status", "dir/x")
		require.ErrorContains(t, err, "exit status 79")
		require.Contains(t, status, "dir/x is not locked; give the full key, lock:FUNCTION:dir/x or, for the scope global, lock:dir/x")
		require.Equal(t, []string{"lock_acquired", "removal_refused", "removal_refused", "removal_refused", "lock_released"},
			testcluster.Story(a.Events(t), file))
		require.Equal(t, []string{"keeps"}, c.calls(t))
	})

	t.Run("first come, first served", func(t *testing.T) {
		const options = `{"key":"line","ttl":{"value":1,"unit":"minute"},"block":{"value":1,"unit":"minute"}`
		before := len(c.calls(t))
		keeper := c.post(t, a, forrstCall("keeper", 0, options+`,"auto_release":false}`))
		var expected []string
		var waiting []func() forrstAnswer
		for i := range 6 {
			id := fmt.Sprint("waits-", i)
			waiting = append(waiting, c.begin(t, c.Nodes[i%3], forrstCall(id, 0, options+"}")))
			expected = append(expected, id)
			c.awaitLine(t, d, i+1)
		}
		release := fmt.Sprintf(`{"key":"lock:work:line","owner":%q}`, keeper.owner())
		require.Empty(t, c.post(t, d, forrstSystem("release", "release", release)).code())
		for _, ended := range waiting {
			require.Empty(t, ended().code())
		}
		require.Equal(t, expected, c.calls(t)[before+1:])
		require.Empty(t, c.post(t, a, forrstSystem("release", "release", release)).code(), "asked again, of another server")
	})

	t.Run("a request is done once", func(t *testing.T) {
		before := len(c.calls(t))
		body := forrstCall("once", 1, `{"key":"once","ttl":{"value":1,"unit":"minute"}}`)
		first := c.begin(t, a, body)
		require.NoError(t, c.upstream.WaitOutput("enter once "))
		retries := []func() forrstAnswer{c.begin(t, a, body), c.begin(t, b, body), c.begin(t, d, body)}
		answer := first()
		require.Equal(t, map[string]any{"done": "once"}, answer.Result, answer.text)
		require.False(t, answer.replay)
		for _, retry := range append(retries, c.begin(t, b, body)) {
			again := retry()
			require.Equal(t, answer.text, again.text)
			require.True(t, again.replay)
		}
		require.Equal(t, []string{"once"}, c.calls(t)[before:])
	})

	t.Run("a replay ends with the lock that it tells of", func(t *testing.T) {
		const options = `{"key":"left","ttl":{"value":1,"unit":"hour"},"auto_release":false`
		body := forrstCall("left", 0, options+`,"owner":"me"}`)
		taken := c.post(t, a, body)
		require.Empty(t, taken.code(), taken.text)
		again := c.post(t, b, body)
		require.Equal(t, taken.text, again.text)
		require.True(t, again.replay)
		release := forrstSystem("left-release", "release", `{"key":"lock:work:left","owner":"me"}`)
		require.False(t, c.post(t, d, release).replay)
		require.True(t, c.post(t, a, release).replay)

		unnamed := forrstCall("theirs", 0, options+"}")
		theirs := c.post(t, d, unnamed)
		require.Empty(t, theirs.code(), theirs.text)
		for i, refused := range []string{body, unnamed} {
			answer := c.post(t, c.Nodes[i], refused)
			require.Equal(t, "LOCK_ACQUISITION_FAILED", answer.code(), answer.text)
			require.NotContains(t, answer.text, theirs.owner())
		}
		_, err := c.command(a, "force-release", "lock:work:left")
		require.NoError(t, err)
		later := c.post(t, b, body)
		require.Empty(t, later.code(), later.text)
		require.False(t, later.replay)
		require.NotEqual(t, taken.text, later.text)
		require.False(t, c.post(t, d, release).replay, "it has another lock to release")
	})

	t.Run("an answer of another protocol passes unchanged", func(t *testing.T) {
		const page = `{ "message": "busy" }`
		body := forrstCall("busy", 0, `{"key":"busy","ttl":{"value":1,"unit":"minute"}}`)
		body = strings.Replace(body, `"work":0`, fmt.Sprintf(`"work":0,"page":%q`, page), 1)
		for i, n := range c.Nodes {
			answer := c.post(t, n, body)
			require.Equal(t, page, strings.TrimSuffix(answer.text, "\n"))
			require.Equal(t, i > 0, answer.replay)
		}
	})

	t.Run("who waits at a server that stops is told", func(t *testing.T) {
		const options = `{"key":"stop","ttl":{"value":1,"unit":"minute"},"block":{"value":1,"unit":"minute"}`
		keeper := c.post(t, a, forrstCall("stop-keeper", 0, options+`,"auto_release":false}`))
		body := forrstCall("waits", 0, options+"}")
		waiting := c.begin(t, d, body)
		c.awaitLine(t, a, 1)
		d.Stop(t)
		told := waiting()
		require.Equal(t, "UNAVAILABLE", told.code(), told.text)
		require.Contains(t, told.text, "this server is stopping: retry on another one")
		waiting = c.begin(t, b, body)
		c.awaitLine(t, a, 1)
		release := fmt.Sprintf(`{"key":"lock:work:stop","owner":%q}`, keeper.owner())
		require.Empty(t, c.post(t, a, forrstSystem("stop-release", "release", release)).code())
		require.Empty(t, waiting().code())
	})

	t.Run("a request is done again later", func(t *testing.T) {
		flags := c.Flags
		c.Flags = append(append([]string{}, flags...), "--forrst-replay", "1s")
		d.Start(t)
		c.Flags = flags
		before := len(c.calls(t))
		body := forrstCall("daily", 0, `{"key":"daily","ttl":{"value":1,"unit":"minute"}}`)
		require.False(t, c.post(t, d, body).replay)
		hosts.Eventually(t, "a call that is none of before", func() (string, bool) {
			answer := c.post(t, d, body)
			return answer.text, !answer.replay
		})
		require.True(t, c.post(t, a, body).replay)
		require.Equal(t, []string{"daily", "daily"}, c.calls(t)[before:])
	})
	c.requireNoLocks(t)
	c.RequireSameState(t)
}

// command runs `lockfs forrst` against a node's endpoint.
func (c *forrstCluster) command(n *testcluster.Node, args ...string) (string, error) {
	return n.Host.Run(c.Program, append(append([]string{"forrst"}, args...), "--endpoint", forrstURL(n))...)
}

// TestForrstServerDies has locks and answers outlive the server that made them, and a call that is cut off
// keep others out until its lock has expired.
func TestForrstServerDies(t *testing.T) {
	t.Parallel()
	c := startForrst(t)
	leader := c.Leader()
	others := c.Others(leader)
	keep := forrstCall("keeps", 0, `{"key":"kept","ttl":{"value":1,"unit":"hour"},"owner":"me","auto_release":false}`)
	taken := c.post(t, leader, keep)
	require.Empty(t, taken.code(), taken.text)
	c.begin(t, leader, forrstCall("cut", 2, `{"key":"cut","ttl":{"value":4,"unit":"second"}}`))
	require.NoError(t, c.upstream.WaitOutput("enter cut "))
	leader.Kill()
	next := c.begin(t, others[0], forrstCall("next", 0, `{"key":"cut","ttl":{"value":4,"unit":"second"},"block":{"value":1,"unit":"minute"}}`))
	for _, n := range others {
		require.Contains(t, n.Host.MustRun(t, "cat", c.Path(".forrst/lock:work:kept")), taken.owner())
		again := c.post(t, n, keep)
		require.Equal(t, taken.text, again.text)
		require.True(t, again.replay)
	}
	release := fmt.Sprintf(`{"key":"lock:work:kept","owner":%q}`, taken.owner())
	require.Empty(t, c.post(t, others[1], forrstSystem("release", "release", release)).code())
	require.Empty(t, next().code())
	require.Equal(t, []string{"keeps", "cut", "next"}, c.calls(t))
	c.requireNoLocks(t)
}

// TestForrstManyClients has many clients want one lock of three servers, whose leader is killed.
func TestForrstManyClients(t *testing.T) {
	t.Parallel()
	c := startForrst(t)
	const threads, calls = 32, 4
	leader := c.Leader()
	args := []string{testcluster.ClientPath(t, "forrst.py"), "client", fmt.Sprint(threads), fmt.Sprint(calls)}
	for _, n := range c.Nodes {
		args = append(args, forrstURL(n))
	}
	clients := c.Net.Host("client").Start("python3", args...)
	hosts.Eventually(t, "a quarter of the calls", func() (string, bool) {
		entered := len(c.calls(t))
		return fmt.Sprint(entered), entered >= threads*calls/4
	})
	leader.Kill()
	require.NoError(t, clients.Wait(), clients.Log())
	require.Equal(t, threads*calls, strings.Count(clients.Stdout(), "done "), clients.Log())

	entered := c.calls(t)
	times := make(map[string]int)
	twice := 0
	for _, id := range entered {
		if times[id]++; times[id] > 1 {
			twice++
		}
	}
	assert.Len(t, times, threads*calls)
	assert.LessOrEqual(t, twice, 1, "only the call that was under way at the killed server may be done again: %v", entered)
	c.requireNoLocks(t)
	leader.Start(t)
	c.requireNoLocks(t)
	c.RequireSameState(t)
}
