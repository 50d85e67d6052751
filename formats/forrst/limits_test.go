package forrst_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/formats/forrst"
)

// TestLockIsReleasedWhenItsAnswerCannotBeRecorded at once, when the store says that there is no room ("MUST be released").
func TestLockIsReleasedWhenItsAnswerCannotBeRecorded(t *testing.T) {
	e := newEndpoint(t, nil)
	e.store.full = fmt.Errorf("%w: QUOTA", forrst.ErrRefused)
	e.requireDone(chargeRequest)
	require.Equal(t, []string{"acquire", "drop"}, e.store.calls)
	e.requireFree()
	e.store.full = nil
	first := e.requireDone(chargeRequest) // the request is a new call
	e.requireReplay(first, chargeRequest)

	e.store.full = errors.New("no answer") // which may have been recorded
	done := make(chan bool, 1)
	go func() {
		e.send(t.Context(), changed(chargeRequest, "req_001", "req_x"))
		done <- true
	}()
	e.awaits(func(m *memory) bool { return len(m.locks) == 1 })
	require.NoError(t, e.store.change(func() error {
		e.store.full = nil
		return nil
	}))
	<-done
	e.requireFree()
	require.Equal(t, []string{"record", "drop"}, e.store.calls[len(e.store.calls)-2:])
}

// TestAnswersAreKeptAsLongAsTheyCount: not for the ttl of a lock that was released.
func TestAnswersAreKeptAsLongAsTheyCount(t *testing.T) {
	e := newEndpoint(t, nil)
	e.requireDone(changed(chargeRequest, `"value":30,"unit":"second"`, `"value":3,"unit":"week"`))
	require.Equal(t, e.Replay, e.store.kept)
	e.requireDone(changed(keptByOwner, `"value":30,"unit":"second"`, `"value":3,"unit":"week"`))
	require.Equal(t, 3*7*24*time.Hour, e.store.kept)
}

// TestSystemFunctionsAreServedBesideManyRequests: those that wait for a lock, and calls under way.
func TestSystemFunctionsAreServedBesideManyRequests(t *testing.T) {
	finish := make(chan bool)
	e := newEndpoint(t, func(w http.ResponseWriter, r *http.Request) {
		<-finish
		answerCharge(w, r)
	})
	e.MaxWaiting, e.MaxCalls = 2, 4
	var ended []func() *httptest.ResponseRecorder
	begin := func(body string) { ended = append(ended, e.begin(t.Context(), body)) }
	begin(withOwner)
	e.awaits(func(m *memory) bool { return len(m.locks) == 1 })
	for _, id := range []string{"1", "2"} {
		begin(waiting(id))
	}
	e.awaits(func(m *memory) bool { return len(m.lines["lock:payments.charge:user:123"]) == 2 })

	w := e.send(t.Context(), waiting("3"))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Equal(t, "1", w.Header().Get("Retry-After"))
	require.Contains(t, w.Body.String(), "2 requests wait for locks on this server, which is its limit")

	begin(changed(chargeRequest, "req_001", "other", "user:123", "user:124"))
	e.awaits(func(m *memory) bool { return len(m.locks) == 2 })
	w = e.send(t.Context(), changed(chargeRequest, "req_001", "another", "user:123", "user:125"))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Contains(t, w.Body.String(), "4 requests are under way on this server, which is its limit")

	for _, function := range []string{"status", "force-release"} {
		require.Contains(t, e.post(http.StatusOK, system("r", function, `{"key":"`+chargeKey+`"}`)), `"key":"`+chargeKey+`"`)
	}
	close(finish)
	for _, end := range ended {
		require.Equal(t, http.StatusOK, end().Code)
	}
	e.requireDone(chargeRequest) // there is room again
}

// TestSlowBodyIsRefused on a real connection.
func TestSlowBodyIsRefused(t *testing.T) {
	e := newEndpoint(t, nil)
	e.ReadTimeout = 50 * time.Millisecond
	server := httptest.NewServer(e)
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{")
	require.NoError(t, err)
	answer, err := io.ReadAll(conn) // the server closes the connection
	require.NoError(t, err)
	require.Contains(t, string(answer), "408 Request Timeout")
	require.Contains(t, string(answer), "did not arrive in time")
}

// TestLongCallOutlivesTheTimeoutOfItsBody: the time limit ends with the body.
func TestLongCallOutlivesTheTimeoutOfItsBody(t *testing.T) {
	finish := make(chan bool)
	e := newEndpoint(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-finish:
			answerCharge(w, r)
		case <-r.Context().Done():
		}
	})
	e.ReadTimeout = 100 * time.Millisecond
	server := httptest.NewServer(e)
	defer server.Close()
	time.AfterFunc(3*e.ReadTimeout, func() { close(finish) })
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, server.URL, strings.NewReader(
		changed(chargeRequest, `"extensions"`, `"x"`)))
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, answer.StatusCode, string(body))
}
