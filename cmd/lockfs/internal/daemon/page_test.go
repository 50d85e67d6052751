package daemon

import (
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster"
	"lockfs/cluster/page"
	"lockfs/cluster/rpc"
	"lockfs/cmd/lockfs/internal/cli"
)

func TestThePagesSocketKnowsWhoAsks(t *testing.T) {
	t.Setenv(cli.SocketDirVariable, t.TempDir())
	require.NoError(t, os.Chmod(os.Getenv(cli.SocketDirVariable), 0o700))
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	shown := page.New(page.Config{Administers: func(rpc.Caller) bool { return false }, Address: "http://127.0.0.1:1", Logger: logger})
	var running parts
	path := cli.PageSocket("server", "a")
	require.NoError(t, servePageSocket(path, shown, cluster.NewMountMetrics(), logger, &running))
	defer running.stop(logger)
	answer, err := cli.SocketClient(path).Post("http://lockfs/v1/login", "", nil)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	require.Equal(t, http.StatusOK, answer.StatusCode)
	var invited page.Invitation
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&invited))
	require.Equal(t, uint32(os.Geteuid()), invited.User)
	found, err := cli.PageSockets()
	require.NoError(t, err)
	require.Equal(t, []string{path}, found)
}

// TestIdleConnectionsMakeRoom opens more connections than an endpoint has, and sends part of a request on each: another client is served.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	const most = 4
	for name, begin := range map[string]string{
		"idle": "", "header": "GET / HTTP/1.1\r\n", "body": "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{",
	} {
		t.Run(name, func(t *testing.T) {
			e, _ := serveForTest(t, most, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(w, r.Body)
			})
			for range 3 * most {
				conn, err := net.Dial("tcp", e.limit.Addr().String())
				require.NoError(t, err)
				defer func() { _ = conn.Close() }()
				_, err = conn.Write([]byte(begin))
				require.NoError(t, err)
			}
			for range 3 { // also on a connection that was used before
				answer, err := http.Post("http://"+e.limit.Addr().String(), "text/plain", strings.NewReader("asked"))
				require.NoError(t, err)
				said, err := io.ReadAll(answer.Body)
				require.NoError(t, err)
				require.NoError(t, answer.Body.Close())
				require.Equal(t, "asked", string(said))
			}
			e.limit.mu.Lock()
			defer e.limit.mu.Unlock()
			require.LessOrEqual(t, e.limit.open, most)
			require.LessOrEqual(t, e.limit.waiting.Len(), most)
		})
	}
}

// TestRequestsUnderWayKeepTheirConnections while other clients connect, which wait until one of the requests is done.
func TestRequestsUnderWayKeepTheirConnections(t *testing.T) {
	const most = 2
	begun, finish := make(chan bool, 9), make(chan bool)
	e, client := serveForTest(t, most, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		begun <- true
		<-finish
	})
	ended := make(chan error, 9)
	ask := func() {
		answer, err := client.Get("http://" + e.limit.Addr().String())
		if err == nil {
			err = answer.Body.Close()
		}
		ended <- err
	}
	for range most {
		go ask()
		<-begun
	}
	go ask()
	require.Empty(t, begun)
	finish <- true
	require.NoError(t, <-ended)
	<-begun // the third client has the connection of the first
	close(finish)
	for range most {
		require.NoError(t, <-ended)
	}
	require.Eventually(t, func() bool {
		e.limit.mu.Lock()
		defer e.limit.mu.Unlock()
		return e.limit.open == e.limit.waiting.Len()
	}, 20*time.Second, time.Millisecond)
}

func serveForTest(t *testing.T, most int, handler http.HandlerFunc) (endpoint, *http.Client) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	e := limitedEndpoint(listener, most, nil)
	var running parts
	logger := slog.New(slog.DiscardHandler)
	serveOn(e, handler, "test", logger, &running)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		running.stop(logger)
	})
	return e, client
}

func TestEndpointsLimitTheirConnections(t *testing.T) {
	pages, err := listenHTTP("127.0.0.1:0", nil)
	require.NoError(t, err)
	forrst, err := (&forrstEndpoint{addr: "127.0.0.1:0"}).listen(nil)
	require.NoError(t, err)
	for _, e := range []endpoint{pages, forrst} {
		require.Equal(t, endpointConns, e.limit.most)
		require.NoError(t, e.listener.Close())
	}
}
