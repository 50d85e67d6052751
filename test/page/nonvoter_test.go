package page

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/cookiejar"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// reader is a program that has logged in to the page of a host.
type reader struct {
	t    testing.TB
	http http.Client
	at   string
}

func newReader(t testing.TB, c *testcluster.Cluster, h *hosts.Host) *reader {
	t.Helper()
	at, login := startUI(t, c, h)
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	dial := func(ctx context.Context, network, address string) (net.Conn, error) { // what a browser makes of the name
		_, port, err := net.SplitHostPort(address)
		require.NoError(t, err)
		return new(net.Dialer).DialContext(ctx, network, "127.0.0.1:"+port)
	}
	r := &reader{t: t, http: http.Client{Jar: jar, Transport: &http.Transport{DialContext: dial}}, at: "http://" + at}
	t.Cleanup(r.http.CloseIdleConnections)
	answer, err := r.http.Get(login)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode)
	return r
}

// get asks for what is JSON.
func (r *reader) get(path string, into any) error {
	answer, err := r.http.Get(r.at + path)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, answer.Status)
	}
	return json.NewDecoder(answer.Body).Decode(into)
}

// awaitMembers waits until the page shows some members in some states.
func (r *reader) awaitMembers(what string, want map[string]string) {
	r.t.Helper()
	hosts.Eventually(r.t, what, func() (string, bool) {
		var list struct {
			Members []struct{ Name, State string }
		}
		err := r.get("/v1/members", &list)
		states := make(map[string]string)
		for _, m := range list.Members {
			states[m.Name] = m.State
		}
		return fmt.Sprint(states, err), err == nil && fmt.Sprint(states) == fmt.Sprint(want)
	})
}

// TestANonvoterHasThePageAndBackups: a server that stays without a vote shows the whole cluster, and makes backups.
func TestANonvoterHasThePageAndBackups(t *testing.T) {
	c := testcluster.StartSecureCluster(t, 1)
	a, b := c.Nodes[0], c.Add(t)
	b.Flags = []string{"--nonvoter"}
	b.Start(t)
	near, far := newReader(t, c, b.Host), newReader(t, c, a.Host)
	near.awaitMembers("both, at the one without a vote", map[string]string{"a": "leader", "b": "non-voter"})

	a.Host.MustRun(t, "mkdir", c.Path("held.lock"))
	hosts.Eventually(t, "the lock, at the one without a vote", func() (string, bool) {
		var list struct{ Locks []struct{ Path string } }
		err := near.get("/v1/locks", &list)
		return fmt.Sprint(list, err), err == nil && len(list.Locks) == 1 && list.Locks[0].Path == "held.lock"
	})
	file := filepath.Join(c.Net.Dir(), "backup")
	b.Host.MustRun(t, "sh", append([]string{"-c", `exec "$0" backup - "$@" > ` + file, c.Program}, b.Asked()...)...)
	var verified struct {
		Node      string
		StateHash string `json:"state_hash"`
	}
	require.NoError(t, json.Unmarshal([]byte(b.Host.MustRun(t, c.Program, "backup", "verify", "--json", file)), &verified))
	require.Equal(t, "b", verified.Node)
	require.NotEmpty(t, verified.StateHash)

	b.Kill()
	far.awaitMembers("that it does not answer", map[string]string{"a": "leader", "b": "unreachable"})
}
