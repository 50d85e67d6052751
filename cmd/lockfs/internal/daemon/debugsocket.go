package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"path/filepath"
	"runtime/debug"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"lockfs/cmd/lockfs/internal/cli"
)

// serveDebug serves what `lockfs debug bundle` collects of this process, on a socket that only this process's user and root can
// connect to: profiles tell strangers too much, and cost too much, for a port. That it cannot be made stops nobody: it is
// logged.
func serveDebug(about cli.Daemon, registry *prometheus.Registry, logger *slog.Logger, parts *parts) {
	listener, err := listenDebug(cli.DebugSocket(about.Kind, about.Of))
	if err != nil {
		logger.Warn("there is no socket for lockfs debug bundle", "error", err)
		return
	}
	about.PID, about.Version = os.Getpid(), cli.ProgramVersion()
	serveOn(limitedEndpoint(listener, pageSocketConns, nil), debugHandler(about, registry), "the debug socket", logger, parts)
}

// listenDebug takes the place of the socket of a process that has ended.
func listenDebug(path string) (net.Listener, error) {
	listener, err := listenAlone(path)
	if err != nil {
		return nil, err
	}
	return &namedListener{listener, path, inodeOf(path)}, nil
}

// listenAlone listens on a socket to which only this user and root can connect. It takes the place of a socket of that name. The file stays when
// the listener is closed.
func listenAlone(path string) (*net.UnixListener, error) {
	if err := cli.MakeSocketDir(); err != nil {
		return nil, err
	}
	// The socket gets its name once its mode is set: no other user can connect in between.
	making := fmt.Sprintf("%s.%d", path, os.Getpid())
	_ = os.Remove(making)
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: making})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false)
	if err = os.Chmod(making, 0o600); err == nil {
		err = os.Rename(making, path)
	}
	if err != nil {
		return nil, errors.Join(err, listener.Close(), os.Remove(making))
	}
	return listener, nil
}

// namedListener removes its socket at its end, unless another process has put its own there meanwhile.
type namedListener struct {
	net.Listener
	path string
	ino  uint64
}

// Close is part of net.Listener.
func (l *namedListener) Close() error {
	if l.ino != 0 && inodeOf(l.path) == l.ino {
		_ = os.Remove(l.path)
	}
	return l.Listener.Close()
}

// inodeOf is 0 if there is nothing.
func inodeOf(path string) uint64 {
	info, err := os.Lstat(path)
	if err != nil {
		return 0
	}
	return info.Sys().(*syscall.Stat_t).Ino
}

func debugHandler(about cli.Daemon, registry *prometheus.Registry) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /about", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(about)
	})
	mux.HandleFunc("GET /build", func(w http.ResponseWriter, _ *http.Request) {
		if info, ok := debug.ReadBuildInfo(); ok {
			_, _ = fmt.Fprint(w, info)
		}
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/{name}", func(w http.ResponseWriter, r *http.Request) {
		pprof.Handler(r.PathValue("name")).ServeHTTP(w, r)
	})
	return mux
}

// dataDirOf is how other processes find a data directory.
func dataDirOf(dir string) string {
	if path, err := filepath.Abs(dir); err == nil {
		return path
	}
	return dir
}
