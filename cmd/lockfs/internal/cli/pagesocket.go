package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

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
