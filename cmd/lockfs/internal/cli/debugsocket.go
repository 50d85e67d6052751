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

// Daemon is what a daemon says of itself on its socket for debugging.
type Daemon struct {
	Kind    string `json:"kind"` // server, mount or dev
	Of      string `json:"of"`   // name of the server, or directory of the mount
	PID     int    `json:"pid"`
	Version string `json:"version"`
	Data    string `json:"data,omitempty"`  // data directory; empty: it has none
	Mount   string `json:"mount,omitempty"` // where it mounts; empty: nowhere
}

const debugSocketPrefix = "debug-"

// DebugSocket is where a daemon of a kind (server, mount, dev) serves what [Daemon] says, metrics and profiles by HTTP. It is not
// among the [Sockets].
func DebugSocket(kind, of string) string {
	dir, name := filepath.Split(socketPath(kind, of))
	path := filepath.Join(dir, debugSocketPrefix+name)
	if len(path)+longestPID > longestSocketPath {
		sum := sha256.Sum256([]byte(kind + of))
		path = filepath.Join(dir, debugSocketPrefix+hex.EncodeToString(sum[:8])+socketSuffix)
	}
	return path
}

// GuardSocket is the path of the socket of the guard of a mount. It is not among the [Sockets].
func GuardSocket(of string) string {
	sum := sha256.Sum256([]byte(of))
	return filepath.Join(OwnSocketDir(), "guard-"+hex.EncodeToString(sum[:8])+socketSuffix)
}

// longestPID is what a process adds to a socket's name until it is ready.
const longestPID = len(".4194304")

// DebugSockets are those of the daemons on this host that this user may be allowed to look into. Whether one is still served
// shows when it is asked.
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

// daemonTimeout is how long a daemon may take to say what it is.
const daemonTimeout = 2 * time.Second

// SocketClient asks the daemon behind a socket by HTTP; the host in the address is of no account.
func SocketClient(socket string) *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{Timeout: daemonTimeout}).DialContext(ctx, "unix", socket)
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
}

// AskDaemon answers what the daemon behind a socket for debugging says of itself.
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
