package daemon

import (
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

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
	require.NoError(t, servePageSocket(path, shown, logger, &running))
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

func TestFewConnectionsAreAcceptedAtATime(t *testing.T) {
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	require.NoError(t, err)
	few := newFewConns(listener, 1)
	defer func() { _ = few.Close() }()
	for range 2 {
		conn, err := net.Dial("unix", listener.Addr().String())
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
	}
	first, err := few.Accept()
	require.NoError(t, err)
	accepted := make(chan net.Conn, 1)
	go func() {
		conn, _ := few.Accept()
		accepted <- conn
	}()
	require.Empty(t, accepted)
	require.NoError(t, first.Close())
	_ = first.Close() // what is closed twice makes room once
	second := <-accepted
	require.Len(t, few.room, 1)
	require.NoError(t, second.Close())
}

// TestEndpointsHaveABound on the connections that whoever reaches them can open.
func TestEndpointsHaveABound(t *testing.T) {
	pages, err := listenHTTP("127.0.0.1:0", nil)
	require.NoError(t, err)
	forrst, err := (&forrstEndpoint{addr: "127.0.0.1:0"}).listen()
	require.NoError(t, err)
	for _, listener := range []net.Listener{pages.listener, forrst} {
		few, bounded := listener.(*fewConns)
		require.True(t, bounded)
		require.Equal(t, mostOnEndpoint, cap(few.room))
		require.NoError(t, few.Close())
	}
}
