package forrst_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/formats/forrst"
)

// behind puts an upstream server behind a runner.
func behind(t testing.TB, serve http.HandlerFunc) (*endpoint, *httptest.Server) {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	e := newEndpoint(t, nil)
	target, err := forrst.ParseUpstream(server.URL + "/rpc?v=1")
	require.NoError(t, err)
	e.Next = &forrst.Upstream{URL: target}
	return e, server
}

func TestUpstreamGetsTheRequestAsItIs(t *testing.T) {
	for _, body := range []string{chargeRequest, changed(chargeRequest, "urn:forrst:ext:atomicLock", "urn:other")} {
		e, _ := behind(t, func(w http.ResponseWriter, r *http.Request) {
			got, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			require.Equal(t, body, string(got))
			require.Equal(t, "/rpc?v=1", r.URL.RequestURI())
			require.Equal(t, "Bearer x", r.Header.Get("Authorization"))
			require.NotEmpty(t, r.Header.Get("X-Forwarded-For"))
			require.Equal(t, body == chargeRequest, r.Header.Get(forrst.TokenHeader) == "1")
			w.WriteHeader(http.StatusAccepted)
			_, _ = w.Write([]byte(`{"result":` + chargeResult + `}`))
		})
		r := httptest.NewRequest(http.MethodPost, "/forrst", nil)
		r.Header.Set("Authorization", "Bearer x")
		r.Header.Set("Accept-Encoding", "gzip")
		r.Body = io.NopCloser(strings.NewReader(body))
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		require.Equal(t, http.StatusAccepted, w.Code)
		require.Contains(t, w.Body.String(), chargeResult)
		require.True(t, json.Valid(w.Body.Bytes()))
		e.requireFree()
	}
}

func TestUpstreamThatIsNotThere(t *testing.T) {
	e, server := behind(t, nil)
	server.Close()
	response := e.post(http.StatusBadGateway, kept)
	require.Equal(t, "UNAVAILABLE", code(t, response))
	require.Contains(t, response, `"acquired":false`)
	require.Contains(t, response, `"id":"req_001"`)
	e.requireFree()
	require.NotContains(t, e.store.calls, "record", "it may be tried again")

	other := changed(chargeRequest, "urn:forrst:ext:atomicLock", "urn:other")
	response = e.post(http.StatusBadGateway, other)
	require.Equal(t, "UNAVAILABLE", code(t, response))
	require.Contains(t, response, `"id":"req_001"`)
	require.NotContains(t, response, "extensions")
}

// Many servers hang up when a function throws, and the lock must be released then.
func TestUpstreamThatHangsUp(t *testing.T) {
	for name, hangUp := range map[string]func(*net.TCPConn) error{
		"before the answer": func(*net.TCPConn) error { return nil },
		"in the headers":    says("HTTP/1.1 200 OK\r\nServer: x\r\n"),
		"in the body":       says("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}"),
		"with a reset":      func(conn *net.TCPConn) error { return conn.SetLinger(0) },
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			e, _ := behind(t, func(w http.ResponseWriter, _ *http.Request) {
				calls++
				conn, _, err := w.(http.Hijacker).Hijack()
				require.NoError(t, err)
				require.NoError(t, hangUp(conn.(*net.TCPConn)))
				require.NoError(t, conn.Close())
			})
			response := e.post(http.StatusBadGateway, chargeRequest)
			require.Equal(t, "DEPENDENCY_ERROR", code(t, response))
			require.Contains(t, response, `"acquired":true`)
			e.requireFree()
			require.Equal(t, response, e.post(http.StatusBadGateway, chargeRequest))
			require.Equal(t, 1, calls)
		})
	}
}

func says(begin string) func(*net.TCPConn) error {
	return func(conn *net.TCPConn) error {
		_, err := io.WriteString(conn, begin)
		return err
	}
}

// A network that fails leaves open what the upstream server does.
func TestUpstreamThatIsCutOff(t *testing.T) {
	e := newEndpoint(t, nil)
	target, err := forrst.ParseUpstream("http://upstream")
	require.NoError(t, err)
	e.Next = &forrst.Upstream{URL: target, Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{})
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ETIMEDOUT)}
	})}
	response := e.post(http.StatusBadGateway, chargeRequest)
	require.Equal(t, "DEPENDENCY_ERROR", code(t, response))
	require.Contains(t, response, `"acquired":true`)
	require.Len(t, e.store.locks, 1, "it may still be at work")
	require.Equal(t, "DEPENDENCY_ERROR", code(t, e.post(http.StatusBadGateway, chargeRequest)))
	require.Equal(t, []string{"acquire", "record"}, e.store.calls)
}

type roundTrip func(*http.Request) (*http.Response, error)

func (do roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return do(r) }

// A connection that is used again may be closed by its server before it has read the call.
func TestUpstreamHasConnectionForEachCallWithLock(t *testing.T) {
	connections := make(map[string]bool)
	e, _ := behind(t, func(w http.ResponseWriter, r *http.Request) {
		connections[r.RemoteAddr] = true
		answerCharge(w, r)
	})
	for _, id := range []string{"a", "b", "c"} {
		e.post(http.StatusOK, changed(chargeRequest, "req_001", id))
	}
	require.Len(t, connections, 3)
}

func TestUpstreamIsCutOffBeforeTheLockExpires(t *testing.T) {
	cut := make(chan struct{})
	e, _ := behind(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
		close(cut)
	})
	short := changed(chargeRequest, `{"value":30,"unit":"second"}`, `{"value":300,"unit":"millisecond"}`)
	require.Equal(t, "DEADLINE_EXCEEDED", code(t, e.post(http.StatusGatewayTimeout, short)))
	<-cut
	require.Len(t, e.store.locks, 1, "it is left to expire")
}

func TestParseUpstream(t *testing.T) {
	for _, good := range []string{"http://h", "https://h:1/path?q=1"} {
		u, err := forrst.ParseUpstream(good)
		require.NoError(t, err)
		require.Equal(t, good, u.String())
	}
	for _, bad := range []string{"", "h:80", "ftp://h/", "http://", "/path", "http://h:x/", "://"} {
		_, err := forrst.ParseUpstream(bad)
		require.Error(t, err, bad)
	}
}
