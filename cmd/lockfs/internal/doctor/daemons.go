package doctor

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"lockfs/cmd/lockfs/internal/cli"
)

func lookAtDaemons(_ context.Context, h *host) []Finding {
	sockets, err := h.daemons()
	if err != nil {
		return one(unknown("", "the sockets of daemons cannot be listed: %v", err))
	}
	var found []Finding
	for _, s := range sockets {
		switch {
		case errors.Is(s.err, unix.ECONNREFUSED):
			found = append(found, warning("start the daemon again if it should run, or remove the file", "%s has no listener: its process was killed", s.path))
		case errors.Is(s.err, fs.ErrPermission):
			found = append(found, unknown("run lockfs doctor as root", "%s belongs to another user", s.path))
		case s.err != nil:
			found = append(found, warning("see the daemon's log", "%s does not answer: %v", s.path, s.err))
		case s.about != nil:
			found = append(found, ok("%s %s runs as process %d, version %s", s.about.Kind, s.about.Of, s.about.PID, s.about.Version))
		default:
			found = append(found, ok("a daemon listens on %s", s.path))
		}
	}
	if found == nil {
		return one(ok("no lockfs daemon is visible to this user"))
	}
	return found
}

const socketTimeout = 2 * time.Second

// findDaemons connects to all sockets of daemons.
func findDaemons() ([]daemonSocket, error) {
	debug, err := cli.DebugSockets()
	if err != nil {
		return nil, err
	}
	others, err := cli.Sockets()
	if err != nil {
		return nil, err
	}
	var found []daemonSocket
	for _, path := range debug {
		about, err := cli.AskDaemon(path)
		if errors.Is(err, fs.ErrPermission) && slices.Contains(others, cli.SocketOfDebug(path)) {
			continue // only root may ask it; the other socket of this daemon follows
		}
		if err != nil {
			about = nil
		}
		found = append(found, daemonSocket{path, about, err})
	}
	for _, path := range others {
		conn, err := net.DialTimeout("unix", filepath.Clean(path), socketTimeout)
		if err == nil {
			_ = conn.Close()
		}
		found = append(found, daemonSocket{path: path, err: err})
	}
	return found, nil
}
