package page

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster"
	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/cluster/session"
	"lockfs/raftstore/lockjson"
	"lockfs/raftstore/storepb"
)

// desk is the page of a cluster of one node, with some locks.
type desk struct {
	t      testing.TB
	node   *cluster.Node
	client *session.Client
	server *Server
	over   http.Handler // TCP
	near   http.Handler // socket
}

// UnmarshalJSON is for tests only: answers are read back there.
func (m *moment) UnmarshalJSON(text []byte) error {
	var at time.Time
	err := json.Unmarshal(text, &at)
	*m = moment(at.UnixNano())
	return err
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// strict is a log in which an error fails the test: a template that breaks off is told nowhere else.
func strict(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(failing{t}, &slog.HandlerOptions{Level: slog.LevelError}))
}

type failing struct{ testing.TB }

func (f failing) Write(line []byte) (int, error) {
	f.Errorf("the page says: %s", line)
	return len(line), nil
}

func openDesk(t testing.TB) *desk {
	t.Helper()
	node, err := cluster.Open(cluster.Config{Name: "alone", DataDir: filepath.Join(t.TempDir(), "data"), Bootstrap: true, Logger: quiet()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = node.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	require.NoError(t, node.WaitReady(ctx))
	require.Eventually(t, func() bool { // a node is ready before the state names it
		status, err := node.Status(ctx, new(clusterpb.StatusRequest))
		return err == nil && len(status.GetMembers()) == 1
	}, 30*time.Second, time.Millisecond)
	client, err := node.OpenClient(ctx, session.Config{Host: "h1", Logger: quiet()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	relay := node.Proxy()
	server := New(Config{Front: relay.InProcess(), Administers: relay.MayAdminister, Host: relay.Host(), Address: "http://desk", Logger: strict(t)})
	t.Cleanup(func() { _ = server.Close() })
	return &desk{t: t, node: node, client: client, server: server, over: server.Handler(), near: server.SocketHandler()}
}

// take makes a lock in the root as root of h1, with a mode.
func (d *desk) take(name string, mode uint32) {
	d.t.Helper()
	result, err := d.client.Mutate(d.t.Context(), &storepb.Caller{Host: "h1", Pid: 7}, &storepb.Op{Op: &storepb.Op_Create{Create: &storepb.Create{
		Parent: 1, Name: []byte(name), Mode: 0o100000 | mode, Exclusive: true,
	}}})
	require.NoError(d.t, err)
	require.Equal(d.t, storepb.Code_OK, result.GetCode())
}

// takeByProcess makes a lock of format pid, of a process that is on h1.
func (d *desk) takeByProcess(name string) {
	d.t.Helper()
	process := &storepb.Process{PidNamespace: 1, Pid: 7, Start: 1, BootId: "b1"}
	result, err := d.client.Mutate(d.t.Context(), &storepb.Caller{Host: "h1", Pid: 7}, &storepb.Op{Op: &storepb.Op_Create{Create: &storepb.Create{
		Parent: 1, Name: []byte(name), Mode: 0o100644, Exclusive: true, Content: []byte("7\n"),
		Facts: &storepb.Facts{Format: storepb.Format_PID, Holder: "7", Host: "h1", Pid: 7, Process: process, Guard: storepb.Guard_HOST, OnStale: storepb.OnStale_REMOVE},
	}}})
	require.NoError(d.t, err)
	require.Equal(d.t, storepb.Code_OK, result.GetCode())
}

// ask asks on the socket, as a user.
func (d *desk) ask(uid uint32, method, target string, form url.Values) *httptest.ResponseRecorder {
	d.t.Helper()
	request := httptest.NewRequest(method, target, strings.NewReader(form.Encode()))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request = request.WithContext(rpc.WithCaller(d.t.Context(), rpc.Caller{Role: rpc.RoleUser, UID: uid, GID: uid, Groups: []uint32{}}))
	answer := httptest.NewRecorder()
	d.near.ServeHTTP(answer, request)
	return answer
}

// serve answers an address at which a user is served, for what does not end by itself. It is there until the test ends.
func (d *desk) serve(uid uint32) string {
	caller := rpc.Caller{Role: rpc.RoleUser, UID: uid, GID: uid, Groups: []uint32{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.near.ServeHTTP(w, r.WithContext(rpc.WithCaller(r.Context(), caller)))
	}))
	d.t.Cleanup(func() {
		_ = d.server.Close()
		server.Close()
	})
	return server.URL
}

func (d *desk) get(uid uint32, target string) string {
	d.t.Helper()
	answer := d.ask(uid, http.MethodGet, target, nil)
	require.Equal(d.t, http.StatusOK, answer.Code, "%s: %s", target, answer.Body)
	return answer.Body.String()
}

func TestEachSeesWhatHeMayReadHimself(t *testing.T) {
	d := openDesk(t)
	d.take("open.lock", 0o644)
	d.take("secret.lock", 0o600)

	var list apiLockList
	require.NoError(t, json.Unmarshal([]byte(d.get(0, "/v1/locks")), &list))
	require.Len(t, list.Locks, 2)
	require.Equal(t, "h1", list.Locks[1].Host)
	list = apiLockList{}
	require.NoError(t, json.Unmarshal([]byte(d.get(1000, "/v1/locks")), &list))
	require.Equal(t, 2, list.Found)
	require.Equal(t, stateHidden, list.Locks[1].State)
	require.Empty(t, list.Locks[1].Host)

	require.NotContains(t, d.get(1000, "/lock/secret.lock"), "on h1")
	require.NotContains(t, d.get(1000, "/v1/locks/secret.lock"), "h1")
	require.Eventually(t, func() bool {
		return strings.Contains(d.get(0, "/v1/events?follow=false"), `"lock_path":"secret.lock"`)
	}, 10*time.Second, 50*time.Millisecond)
	for line := range strings.Lines(d.get(1000, "/v1/events?follow=false")) {
		var event lockjson.Event
		require.NoError(t, json.Unmarshal([]byte(line), &event))
		if event.LockPath == "secret.lock" {
			require.Empty(t, event.Host, "of what he may not read he is told no holder")
		}
	}
	require.NotContains(t, d.get(1000, "/lock/open.lock"), "/release/", "he is no administrator")
	require.Contains(t, d.get(0, "/lock/open.lock"), "/release/open.lock?token=")
}

func TestAnAddressLogsInOnce(t *testing.T) {
	d := openDesk(t)
	over := func(path string, cookies ...*http.Cookie) *httptest.ResponseRecorder {
		request := httptest.NewRequest(http.MethodGet, path, nil)
		for _, cookie := range cookies {
			request.AddCookie(cookie)
		}
		answer := httptest.NewRecorder()
		d.over.ServeHTTP(answer, request)
		return answer
	}
	require.Equal(t, http.StatusUnauthorized, over("/").Code)
	require.Equal(t, http.StatusUnauthorized, over("/v1/locks").Code)
	require.Equal(t, http.StatusForbidden, over("/login/guessed").Code)

	var invited Invitation
	require.NoError(t, json.Unmarshal(d.ask(4321, http.MethodPost, "/v1/login", nil).Body.Bytes(), &invited))
	require.Equal(t, uint32(4321), invited.User)
	path, is := strings.CutPrefix(invited.URL, "http://desk")
	require.True(t, is, invited.URL)
	first := over(path)
	require.Equal(t, http.StatusOK, first.Code)
	require.Equal(t, http.StatusForbidden, over(path).Code, "it works once")
	cookie := first.Result().Cookies()[0]
	require.True(t, cookie.HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, cookie.SameSite)
	page := over("/", cookie)
	require.Equal(t, http.StatusOK, page.Code)
	require.Contains(t, page.Body.String(), "uid 4321")
	require.Equal(t, http.StatusUnauthorized, over("/", &http.Cookie{Name: cookieName, Value: "other"}).Code)
	require.Equal(t, http.StatusNotFound, over("/v1/login", cookie).Code, "who is logged in cannot log in others")

	require.NoError(t, json.Unmarshal(d.ask(4321, http.MethodPost, "/v1/login", nil).Body.Bytes(), &invited))
	d.server.logins.now = func() time.Time { return time.Now().Add(inviteTime) }
	require.Equal(t, http.StatusForbidden, over(strings.TrimPrefix(invited.URL, "http://desk")).Code, "it is too old")
	d.server.logins.now = func() time.Time { return time.Now().Add(loginTime) }
	require.Equal(t, http.StatusUnauthorized, over("/", cookie).Code, "the login is over")
}

func TestNobodyIsServedWhoIsNotKnown(t *testing.T) {
	d := openDesk(t)
	answer := httptest.NewRecorder()
	d.near.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/v1/locks", nil))
	require.Equal(t, http.StatusForbidden, answer.Code)
}

var codeInForm = regexp.MustCompile(`name="code" value="([0-9a-f]+)"`)

func TestALockIsReleasedByWhoIsAskedAgain(t *testing.T) {
	d := openDesk(t)
	d.take("held.lock", 0o644)
	var before LockDetail
	require.NoError(t, json.Unmarshal([]byte(d.get(0, "/v1/locks/held.lock")), &before))
	asked := d.get(0, fmt.Sprintf("/release/held.lock?token=%d", before.Token))
	code := codeInForm.FindStringSubmatch(asked)[1]
	form := url.Values{"code": {code}, "token": {fmt.Sprint(before.Token)}}

	require.Equal(t, http.StatusForbidden, d.ask(0, http.MethodPost, "/release/held.lock", url.Values{"token": form["token"]}).Code, "no code")
	require.Equal(t, http.StatusForbidden, d.ask(1000, http.MethodPost, "/release/held.lock", form).Code, "the code of somebody else")
	theirs := codeInForm.FindStringSubmatch(d.get(1000, "/") + `name="code" value="00"`)[1]
	require.Equal(t, http.StatusForbidden, d.ask(1000, http.MethodPost, "/release/held.lock", url.Values{"code": {theirs}, "token": form["token"]}).Code)
	other := url.Values{"code": {code}, "token": {fmt.Sprint(before.Token + 1)}}
	require.Equal(t, http.StatusConflict, d.ask(0, http.MethodPost, "/release/held.lock", other).Code, "another lock than was seen")
	request := httptest.NewRequest(http.MethodPost, "/release/held.lock", strings.NewReader(form.Encode()))
	request.Header.Set("Origin", "http://elsewhere")
	request = request.WithContext(rpc.WithCaller(t.Context(), rpc.Caller{Role: rpc.RoleUser}))
	foreign := httptest.NewRecorder()
	d.near.ServeHTTP(foreign, request)
	require.Equal(t, http.StatusForbidden, foreign.Code, "from another site")
	require.NotContains(t, d.get(0, "/v1/locks"), `"found":0`)

	require.Equal(t, http.StatusSeeOther, d.ask(0, http.MethodPost, "/release/held.lock", form).Code)
	require.Eventually(t, func() bool { return strings.Contains(d.get(0, "/v1/locks"), `"found":0`) }, 10*time.Second, 20*time.Millisecond)
	events := d.get(0, "/v1/events?follow=false")
	require.Contains(t, events, `"event":"lock_removed"`)
	require.Contains(t, events, `"by":{"host":"alone",`)
	require.Contains(t, d.get(0, "/lock/held.lock"), "no lock of this name exists now")
	require.Equal(t, http.StatusConflict, d.ask(0, http.MethodPost, "/release/held.lock", form).Code, "it is gone")
}

func TestAHostThatIsMountedIsNotForgotten(t *testing.T) {
	d := openDesk(t)
	require.Equal(t, http.StatusConflict, d.ask(0, http.MethodGet, "/forget/h1", nil).Code)
	require.Equal(t, http.StatusForbidden, d.ask(1000, http.MethodGet, "/forget/h1", nil).Code)
	d.take("held.lock", 0o644)
	d.takeByProcess("process.lock")
	require.NoError(t, d.client.Close(t.Context()))
	require.Eventually(t, func() bool { return strings.Contains(d.get(0, "/v1/locks"), `"state":"unreachable"`) }, 10*time.Second, 50*time.Millisecond)
	require.Regexp(t, `(?s)process\.lock.*held\.lock`, d.get(0, "/"), "trouble first")
	require.Contains(t, d.get(0, "/lock/process.lock"), "lockfs host forget h1")
	require.Eventually(t, func() bool { return d.ask(0, http.MethodGet, "/forget/h1", nil).Code == http.StatusOK }, 10*time.Second, 50*time.Millisecond)
	code := codeInForm.FindStringSubmatch(d.get(0, "/forget/h1"))[1]
	require.Equal(t, http.StatusForbidden, d.ask(0, http.MethodPost, "/forget/h1", nil).Code)
	require.Equal(t, http.StatusSeeOther, d.ask(0, http.MethodPost, "/forget/h1", url.Values{"code": {code}}).Code)
	require.Contains(t, d.get(0, "/v1/events?follow=false"), `"event":"host_forgotten"`)
	require.Eventually(t, func() bool { return !strings.Contains(d.get(0, "/v1/locks"), "process.lock") }, 10*time.Second, 50*time.Millisecond)
}

func TestPagesAskNoOtherHost(t *testing.T) {
	d := openDesk(t)
	d.take("a.lock", 0o644)
	for _, target := range []string{"/", "/?group=directory", "/events", "/hosts", "/members", "/alarms", "/lock/a.lock"} {
		answer := d.ask(0, http.MethodGet, target, nil)
		require.Equal(t, http.StatusOK, answer.Code, target)
		policy := answer.Header().Get("Content-Security-Policy")
		require.Contains(t, policy, "default-src 'none'")
		require.NotContains(t, policy, "unsafe")
		page := answer.Body.String()
		require.NotRegexp(t, `(?i)\s(style|on[a-z]+)=|<style|javascript:|(src|href|action)="(https?:)?//`, page, target)
		require.Equal(t, 1, strings.Count(page, "<script"), target)
		require.Contains(t, page, "</html>", target)
	}
}

// TestOnlyWhatHasChangedIsSent: the second update of a stream has the one lock that came, and nothing else.
func TestOnlyWhatHasChangedIsSent(t *testing.T) {
	d := openDesk(t)
	d.take("a.lock", 0o644)
	d.take("b.lock", 0o644)
	answer, err := http.Get(d.serve(0) + "/live/")
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	until := func(what func(update) bool) update {
		for lines.Scan() {
			var u update
			if data, is := strings.CutPrefix(lines.Text(), "data: "); is {
				require.NoError(t, json.Unmarshal([]byte(data), &u))
				if what(u) {
					return u
				}
			}
		}
		require.NoError(t, lines.Err())
		t.Fatal("the stream has ended")
		return update{}
	}
	first := until(func(update) bool { return true })
	require.Len(t, first.Lists["locks"].Rows, 2)
	require.Contains(t, first.Blocks["banner"], "alone")
	d.take("c.lock", 0o644)
	second := until(func(u update) bool { return len(u.Lists) > 0 })
	require.Len(t, second.Lists["locks"].Rows, 1)
	require.Equal(t, []string{"1/a.lock", "1/b.lock", "1/c.lock"}, second.Lists["locks"].Order)
}
