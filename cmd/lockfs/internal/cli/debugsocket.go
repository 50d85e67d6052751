package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Daemon is the description of a daemon on its debug socket.
type Daemon struct {
	Kind    string `json:"kind"` // server, mount or dev
	Of      string `json:"of"`   // name of the server, or directory of the mount
	PID     int    `json:"pid"`
	Version string `json:"version"`
	Data    string `json:"data,omitempty"`  // data directory, if any
	Mount   string `json:"mount,omitempty"` // mount point, if any
}

const debugSocketPrefix = "debug-"

// DebugSocket returns the path of the socket on which a daemon of a kind (server, mount, dev) serves
// [Daemon], metrics and profiles over HTTP. It is not one of the [Sockets].
func DebugSocket(kind, of string) string {
	dir, name := filepath.Split(socketPath(kind, of))
	path := filepath.Join(dir, debugSocketPrefix+name)
	if len(path)+longestPID > longestSocketPath {
		sum := sha256.Sum256([]byte(kind + of))
		path = filepath.Join(dir, debugSocketPrefix+hex.EncodeToString(sum[:8])+socketSuffix)
	}
	return path
}

// KindOfSocket returns the kind of daemon with a [Sockets] or [DebugSockets] path: server, mount or dev; ""
// for other paths.
func KindOfSocket(path string) string {
	kind := socketKind(strings.TrimPrefix(filepath.Base(path), debugSocketPrefix))
	if kind < 0 {
		return ""
	}
	return socketKinds[kind]
}

// SocketOfDebug returns the path among [Sockets] of the daemon with a debug socket.
func SocketOfDebug(path string) string {
	dir, name := filepath.Split(path)
	return filepath.Join(dir, strings.TrimPrefix(name, debugSocketPrefix))
}

// GuardSocket returns the path of the socket of a mount's guard. It is not one of the [Sockets].
func GuardSocket(of string) string {
	sum := sha256.Sum256([]byte(of))
	return filepath.Join(OwnSocketDir(), "guard-"+hex.EncodeToString(sum[:8])+socketSuffix)
}

// longestPID is the suffix of a socket's name until its process is ready.
const longestPID = len(".4194304")

// DebugSockets returns the debug sockets of this host that this user may be able to open. Some may have no
// listener.
func DebugSockets() ([]string, error) {
	var found []string
	for _, dir := range SocketDirs() {
		entries, err := os.ReadDir(dir)
		switch {
		case errors.Is(err, os.ErrNotExist):
			continue
		case err != nil:
			return nil, err
		case !trustedDir(dir):
			continue
		}
		for _, entry := range entries {
			name := entry.Name()
			if strings.HasPrefix(name, debugSocketPrefix) && strings.HasSuffix(name, socketSuffix) && entry.Type() == os.ModeSocket {
				found = append(found, filepath.Join(dir, name))
			}
		}
	}
	return found, nil
}

// daemonTimeout limits one request for [Daemon].
const daemonTimeout = 2 * time.Second

// SocketClient returns an HTTP client that connects to a socket, with any host in the URL.
func SocketClient(socket string) *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{Timeout: daemonTimeout}).DialContext(ctx, "unix", socket)
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
}

// AskDaemon reads the description of the daemon behind a debug socket.
func AskDaemon(socket string) (*Daemon, error) {
	client := SocketClient(socket)
	client.Timeout = daemonTimeout
	reply, err := client.Get("http://lockfs/about")
	if err != nil {
		return nil, err
	}
	defer func() { _ = reply.Body.Close() }()
	about := new(Daemon)
	return about, json.NewDecoder(io.LimitReader(reply.Body, 1<<20)).Decode(about)
}
