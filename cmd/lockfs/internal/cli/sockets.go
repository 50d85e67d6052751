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

// SocketDirVariable overrides the directory for the sockets of daemons.
const SocketDirVariable = "LOCKFS_SOCKET_DIR"

const (
	socketSuffix = ".sock"

	// longestSocketPath is the limit of struct sockaddr_un without its final zero byte.
	longestSocketPath = 107
)

// socketKinds are the daemons with a socket, in the order in which commands prefer them.
var socketKinds = []string{"server", "mount", "dev"}

// ServerSocket returns the socket of a server.
func ServerSocket(name string) string { return socketPath(socketKinds[0], name) }

// MountSocket returns the socket of the daemon of a mount without a server.
func MountSocket(dir string) string { return socketPath(socketKinds[1], dir) }

// DevSocket returns the socket of `lockfs dev`.
func DevSocket(dir string) string { return socketPath(socketKinds[2], dir) }

// socketPath replaces a name by its hash if the path would be too long.
func socketPath(kind, of string) string {
	path := filepath.Join(OwnSocketDir(), kind+"-"+escape(of)+socketSuffix)
	if len(path) > longestSocketPath {
		sum := sha256.Sum256([]byte(of))
		path = filepath.Join(OwnSocketDir(), kind+"-"+hex.EncodeToString(sum[:8])+socketSuffix)
	}
	return path
}

// escape turns a server or directory name into a file name: /mnt/locks becomes mnt-locks.
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

// OwnSocketDir returns the directory for sockets of this user's daemons.
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

// MakeSocketDir creates [OwnSocketDir] if it is missing, with access for all users for root and for this user
// only otherwise. It fails if another user owns the directory, because that user could impersonate a daemon.
// A directory from [SocketDirVariable] keeps its mode.
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
		return fmt.Errorf("directory for sockets: another user owns %s or may write to it; set %s to another directory",
			dir, SocketDirVariable)
	}
	if os.Getenv(SocketDirVariable) != "" && !made {
		return nil
	}
	// The directory also has session files, which must stay private.
	if err := os.Chmod(dir, mode); err != nil {
		return fmt.Errorf("directory for sockets: %w", err)
	}
	return nil
}

// SocketDirs returns the directories in which this user's commands look for sockets.
func SocketDirs() []string {
	dirs := []string{OwnSocketDir()}
	if os.Getenv(SocketDirVariable) == "" && dirs[0] != rootsSocketDir {
		dirs = append(dirs, rootsSocketDir)
	}
	return dirs
}

// Sockets returns the sockets of daemons on this host in order of preference. Some may have no listener.
func Sockets() ([]string, error) {
	var found []string
	for _, dir := range SocketDirs() {
		if !trustedDir(dir) { // another user may have created it to disturb commands
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

// socketKind returns the index of a name in socketKinds, or -1.
func socketKind(name string) int {
	kind, rest, _ := strings.Cut(name, "-")
	if !strings.HasSuffix(rest, socketSuffix) {
		return -1
	}
	return slices.Index(socketKinds, kind)
}

// trustedDir reports whether only root or this user can have created files in a directory. A link is not
// trusted, because its owner can change it.
func trustedDir(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return false
	}
	owner := info.Sys().(*syscall.Stat_t).Uid
	return (owner == 0 || owner == uint32(os.Geteuid())) && info.Mode().Perm()&0o022 == 0
}

const pageSocketPrefix = "page-"

// PageSocket returns the path of the socket on which a daemon of a kind (server, mount, dev) serves the page
// of `lockfs ui` to every user of the host. It is not one of the [Sockets].
func PageSocket(kind, of string) string {
	dir, name := filepath.Split(socketPath(kind, of))
	path := filepath.Join(dir, pageSocketPrefix+name)
	if len(path) > longestSocketPath {
		sum := sha256.Sum256([]byte(of))
		path = filepath.Join(dir, pageSocketPrefix+kind+"-"+hex.EncodeToString(sum[:8])+socketSuffix)
	}
	return path
}

// PageSockets returns the page sockets of this host in order of preference. Some may have no listener.
func PageSockets() ([]string, error) {
	var found []string
	for _, dir := range SocketDirs() {
		if !trustedDir(dir) {
			continue
		}
		entries, err := os.ReadDir(dir)
		switch {
		case errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrPermission):
			continue
		case err != nil:
			return nil, err
		}
		for _, entry := range entries {
			if pageSocketKind(entry.Name()) >= 0 && entry.Type() == os.ModeSocket {
				found = append(found, filepath.Join(dir, entry.Name()))
			}
		}
	}
	slices.SortStableFunc(found, func(a, b string) int { return pageSocketKind(filepath.Base(a)) - pageSocketKind(filepath.Base(b)) })
	return found, nil
}

// pageSocketKind returns the index of the daemon's kind in socketKinds, or -1.
func pageSocketKind(name string) int {
	name, is := strings.CutPrefix(name, pageSocketPrefix)
	if !is {
		return -1
	}
	return socketKind(name)
}
