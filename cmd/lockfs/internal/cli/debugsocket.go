package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
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
