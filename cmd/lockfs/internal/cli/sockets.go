package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// SocketDirVariable names another directory for the sockets of daemons.
const SocketDirVariable = "LOCKFS_SOCKET_DIR"

const (
	socketSuffix = ".sock"

	// longestSocketPath is what fits into a struct sockaddr_un, with the byte that ends it.
	longestSocketPath = 107
)

// socketKinds are the daemons that have a socket, in the order in which commands ask them: who knows the cluster best is first.
var socketKinds = []string{"server", "mount", "dev"}

// ServerSocket is where the server of a name is asked on its host.
func ServerSocket(name string) string { return socketPath(socketKinds[0], name) }

// MountSocket is where the daemon of a mount without a server is asked.
func MountSocket(dir string) string { return socketPath(socketKinds[1], dir) }

// DevSocket is where `lockfs dev` is asked.
func DevSocket(dir string) string { return socketPath(socketKinds[2], dir) }

// socketPath has a sum in place of what is too long for a path of a socket.
func socketPath(kind, of string) string {
	path := filepath.Join(OwnSocketDir(), kind+"-"+escape(of)+socketSuffix)
	if len(path) > longestSocketPath {
		sum := sha256.Sum256([]byte(of))
		path = filepath.Join(OwnSocketDir(), kind+"-"+hex.EncodeToString(sum[:8])+socketSuffix)
	}
	return path
}

// escape makes a name of a file of what names a server or a directory: /mnt/locks is mnt-locks.
func escape(of string) string {
	var b strings.Builder
	for _, c := range []byte(strings.Trim(of, "/")) {
		switch {
		case c == '/':
			b.WriteByte('-')
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '.':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

const rootsSocketDir = "/run/lockfs"

// OwnSocketDir is where daemons of this user have their sockets.
func OwnSocketDir() string {
	if dir := os.Getenv(SocketDirVariable); dir != "" {
		return dir
	}
	if os.Geteuid() == 0 {
		return rootsSocketDir
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "lockfs")
	}
	return fmt.Sprintf("/tmp/lockfs-%d", os.Geteuid())
}

// MakeSocketDir makes [OwnSocketDir] if it is missing: open to all if it is root's, else to this user only. It is an error if it
// belongs to somebody else, who could answer in a daemon's place. One that [SocketDirVariable] names keeps its mode.
func MakeSocketDir() error {
	dir, mode := OwnSocketDir(), os.FileMode(0o700)
	if os.Geteuid() == 0 {
		mode = 0o755
	}
	_, err := os.Lstat(dir)
	made := errors.Is(err, os.ErrNotExist)
	if err := os.MkdirAll(dir, mode); err != nil {
		return fmt.Errorf("directory for sockets: %w", err)
	}
	if !trustedDir(dir) {
		return fmt.Errorf("directory for sockets: %s belongs to somebody else, or others may write to it; set %s to another one",
			dir, SocketDirVariable)
	}
	if os.Getenv(SocketDirVariable) != "" && !made {
		return nil
	}
	// The directory is also that of sessions, which are nobody else's.
	if err := os.Chmod(dir, mode); err != nil {
		return fmt.Errorf("directory for sockets: %w", err)
	}
	return nil
}

// SocketDirs are where commands of this user look for sockets.
func SocketDirs() []string {
	dirs := []string{OwnSocketDir()}
	if os.Getenv(SocketDirVariable) == "" && dirs[0] != rootsSocketDir {
		dirs = append(dirs, rootsSocketDir)
	}
	return dirs
}

// Sockets are the sockets of daemons on this host, in the order in which they are to be asked. Whether one is still listened on
// shows when it is asked.
func Sockets() ([]string, error) {
	var found []string
	for _, dir := range SocketDirs() {
		if !trustedDir(dir) { // also what somebody else has made there, so that commands do not work
			continue
		}
		entries, err := os.ReadDir(dir)
		switch {
		case errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrPermission):
			continue
		case err != nil:
			return nil, fmt.Errorf("look for sockets: %w", err)
		}
		for _, entry := range entries {
			if socketKind(entry.Name()) >= 0 && entry.Type() == os.ModeSocket {
				found = append(found, filepath.Join(dir, entry.Name()))
			}
		}
	}
	slices.SortStableFunc(found, func(a, b string) int { return socketKind(filepath.Base(a)) - socketKind(filepath.Base(b)) })
	return found, nil
}

// socketKind is the index in socketKinds of a name, or -1.
func socketKind(name string) int {
	kind, rest, _ := strings.Cut(name, "-")
	if !strings.HasSuffix(rest, socketSuffix) {
		return -1
	}
	return slices.Index(socketKinds, kind)
}

// trustedDir tells whether only root or this user can have put something into a directory. A link to one can be changed by who made it.
func trustedDir(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return false
	}
	owner := info.Sys().(*syscall.Stat_t).Uid
	return (owner == 0 || owner == uint32(os.Geteuid())) && info.Mode().Perm()&0o022 == 0
}
