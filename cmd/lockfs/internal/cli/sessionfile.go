package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// longestSessionName is the limit for the name of a session file in bytes, without its suffix.
const longestSessionName = 200

// SessionFile returns the file with the session of a mount for later processes on this boot; empty if there
// is no suitable place. Other files of a mount begin with its name. Hosts in namespaces of one machine may
// share the folder, so the owner is part of the name: the host, or the ID of the server in the same process.
// A wiped disk gives a server another ID.
func SessionFile(whose, dir string) string {
	folder := os.Getenv("XDG_RUNTIME_DIR")
	if os.Geteuid() == 0 || folder == "" {
		folder = "/run"
	}
	if os.Geteuid() != 0 && folder == "/run" {
		return "" // a successor opens its own session
	}
	return filepath.Join(folder, "lockfs", sessionFileName(whose, dir))
}

// serverSession is a link in a server's data directory.
const serverSession = "mount.session"

// ServerSessionFile returns the session file of a server's mount, from the link of [LinkSessionFile] in the
// data directory.
func ServerSessionFile(data string) string {
	link := filepath.Join(data, serverSession)
	if file, err := os.Readlink(link); err == nil {
		return file
	}
	return link
}

// LinkSessionFile returns the session file of a server's mount and links to it from the data directory. A
// wiped data directory thus begins without a session. A server with damaged data still finds its mount. The
// file is in the data directory only if there is no other place, or if it was there before: a failing disk
// may lose its last writes. A successor would then undo calls that programs know to be complete. An error
// means that later processes will not find the file.
func LinkSessionFile(data, id, dir string) (string, error) {
	link := filepath.Join(data, serverSession)
	if st, err := os.Lstat(link); err == nil && st.Mode().IsRegular() {
		return link, nil
	}
	file := SessionFile(id, dir)
	if file == "" || os.MkdirAll(filepath.Dir(file), 0o700) != nil || unix.Access(filepath.Dir(file), unix.W_OK) != nil {
		if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return link, err
		}
		return link, nil
	}
	if file == ServerSessionFile(data) {
		return file, nil
	}
	fresh := link + ".tmp"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return file, err
	}
	if err := os.Symlink(file, fresh); err != nil {
		return file, err
	}
	return file, os.Rename(fresh, link)
}

// sessionFileName returns a unique name for each owner and directory.
func sessionFileName(whose, dir string) string {
	name := url.PathEscape(whose) + "," + url.PathEscape(dir)
	if len(name) > longestSessionName {
		sum := sha256.Sum256([]byte(name))
		name = hex.EncodeToString(sum[:])
	}
	return name + ".session"
}
