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

	"lockfs/cluster"
	"lockfs/cluster/rpc"
	"lockfs/cmd/lockfs/internal/cli"
)

// serveDebug serves the data for `lockfs debug bundle` on a socket for root and this user only: profiles
// reveal and cost too much for a port. An error is only logged.
func serveDebug(about cli.Daemon, registry *prometheus.Registry, logger *slog.Logger, parts *parts) {
	listener, err := listenDebug(cli.DebugSocket(about.Kind, about.Of))
	if err != nil {
		logger.Warn("the debug socket is missing, so lockfs debug bundle skips this process", "error", err)
		return
	}
	about.PID, about.Version = os.Getpid(), cli.ProgramVersion()
	serveOn(limitedEndpoint(listener, pageSocketConns, nil), debugHandler(about, registry), "the debug socket", logger, parts)
}

// listenDebug replaces the socket of an earlier process.
func listenDebug(path string) (net.Listener, error) {
	listener, err := listenAlone(path)
	if err != nil {
		return nil, err
	}
	return &namedListener{listener, path, inodeOf(path)}, nil
}

// listenAlone listens on a socket for root and this user only, and replaces an earlier one. The file stays
// after the listener is closed.
func listenAlone(path string) (*net.UnixListener, error) {
	if err := cli.MakeSocketDir(); err != nil {
		return nil, err
	}
	// The socket gets its name after its mode, so no other user can connect in between.
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

// namedListener removes its socket on Close, unless another process has replaced it.
type namedListener struct {
	net.Listener
	path string
	ino  uint64
}

func (l *namedListener) Close() error {
	if l.ino != 0 && inodeOf(l.path) == l.ino {
		_ = os.Remove(l.path)
	}
	return l.Listener.Close()
}

// inodeOf returns the inode number of a file; 0 if it is missing.
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

// dataDirOf returns the path of a data directory for other processes.
func dataDirOf(dir string) string {
	if path, err := filepath.Abs(dir); err == nil {
		return path
	}
	return dir
}

// serveSocket serves commands on this host until the parts stop. An error is only logged, because the daemon
// works without it.
func serveSocket(path string, server *rpc.Server, metrics *cluster.MountMetrics, logger *slog.Logger, parts *parts) {
	listener, err := listenSocket(path)
	if err != nil {
		logger.Warn("commands on this host cannot find this process", "error", err)
		return
	}
	metrics.AddBudgets(server.Budgets()...)
	go func() { _ = server.Serve(listener) }() // ends with the listener
	parts.started("socket", func() error {
		err := listener.Close() // removes the socket
		server.Close()
		return err
	})
}

func listenSocket(path string) (net.Listener, error) {
	if err := cli.MakeSocketDir(); err != nil {
		return nil, err
	}
	return rpc.ListenSocket(path)
}
