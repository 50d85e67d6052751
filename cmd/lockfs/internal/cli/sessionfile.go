package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"os"
	"path/filepath"
)

// longestSessionName is what the name of a session file may have, in bytes, besides what is added to it.
const longestSessionName = 200

// SessionFile is where a later process on this boot finds the session of a mount without a server; empty: nowhere. Its name begins the
// names of others that processes have which are there at the same time. Hosts in namespaces of one machine may share the folder, so
// their names are part of it.
func SessionFile(host, dir string) string {
	folder := os.Getenv("XDG_RUNTIME_DIR")
	if os.Geteuid() == 0 || folder == "" {
		folder = "/run"
	}
	if os.Geteuid() != 0 && folder == "/run" {
		return "" // a successor opens a session of its own
	}
	return filepath.Join(folder, "lockfs", sessionFileName(host, dir))
}

// sessionFileName is another one for each host and directory.
func sessionFileName(host, dir string) string {
	name := url.PathEscape(host) + "," + url.PathEscape(dir)
	if len(name) > longestSessionName {
		sum := sha256.Sum256([]byte(name))
		name = hex.EncodeToString(sum[:])
	}
	return name + ".session"
}
