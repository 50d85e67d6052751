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

// longestSessionName is what the name of a session file may have, in bytes, besides what is added to it.
const longestSessionName = 200

// SessionFile is where a later process on this boot finds the session of a mount; empty: nowhere. Its name begins the names of others
// that processes have which are there at the same time. Hosts in namespaces of one machine may share the folder, so whose mount it is is
// part of it: the host's name, or the id of the server in the same process, which is another one once its disk was wiped.
func SessionFile(whose, dir string) string {
	folder := os.Getenv("XDG_RUNTIME_DIR")
	if os.Geteuid() == 0 || folder == "" {
		folder = "/run"
	}
	if os.Geteuid() != 0 && folder == "/run" {
		return "" // a successor opens a session of its own
	}
	return filepath.Join(folder, "lockfs", sessionFileName(whose, dir))
}

// serverSession is a link in a server's data directory.
const serverSession = "mount.session"

// ServerSessionFile is where the mount of the server of a data directory has its session, as [LinkSessionFile] has noted.
func ServerSessionFile(data string) string {
	link := filepath.Join(data, serverSession)
	if file, err := os.Readlink(link); err == nil {
		return file
	}
	return link
}

// LinkSessionFile answers the SessionFile of a server's mount, and has it found through its data directory: whoever wipes that begins
// anew, and a server that cannot read the rest of it any more finds its mount all the same. The file itself is there only if it can be
// nowhere else, or was there before. A disk that fails may lose what it said last: what a program was told of would be taken for under way,
// and be taken back. The error is that it will not be found.
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

// sessionFileName is another one for each host, or server, and directory.
func sessionFileName(whose, dir string) string {
	name := url.PathEscape(whose) + "," + url.PathEscape(dir)
	if len(name) > longestSessionName {
		sum := sha256.Sum256([]byte(name))
		name = hex.EncodeToString(sum[:])
	}
	return name + ".session"
}
