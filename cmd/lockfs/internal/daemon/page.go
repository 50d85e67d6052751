package daemon

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"

	"lockfs/cluster"
	"lockfs/cluster/page"
	"lockfs/cluster/rpc"
	"lockfs/cmd/lockfs/internal/cli"
)

// endpoint is where people and Prometheus look by HTTP, if anywhere.
type endpoint struct {
	listener net.Listener // nil: nowhere
	url      string       // as somebody on this host has it
}

// listenHTTP listens where an address says; empty: nowhere. protect says who may look; nil: everybody.
func listenHTTP(address string, protect func(net.Listener) net.Listener) (endpoint, error) {
	if address == "" {
		return endpoint{}, nil
	}
	plain, err := net.Listen("tcp", address)
	if err != nil {
		return endpoint{}, err
	}
	plain = newFewConns(plain, mostOnEndpoint)
	e := endpoint{listener: plain}
	scheme := "http://"
	if protect != nil {
		if e.listener = protect(plain); e.listener != plain {
			scheme = "https://"
		}
	}
	host, port, _ := net.SplitHostPort(plain.Addr().String())
	if ip := net.ParseIP(host); ip.IsUnspecified() {
		if host, err = os.Hostname(); err != nil {
			host = "127.0.0.1"
		}
	}
	e.url = scheme + net.JoinHostPort(host, port)
	return e, nil
}

// serveHTTP serves at an endpoint, if there is one, and the page of `lockfs ui` on a socket besides. other is what there is for machines.
func serveHTTP(e endpoint, about cli.Daemon, relay *cluster.Relay, other http.Handler, logger *slog.Logger, parts *parts) {
	shown := page.New(page.Config{
		Front: relay.Front(), Administers: relay.Administers, Host: relay.Host(), Mount: about.Mount, Address: e.url, Logger: logger,
	})
	if e.listener != nil {
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", other)
		mux.Handle("GET /healthz", other)
		mux.Handle("/", shown.Handler())
		serveOn(e.listener, mux, logger, parts)
	}
	if err := servePageSocket(cli.PageSocket(about.Kind, about.Of), shown, logger, parts); err != nil {
		logger.Warn("there is no socket for lockfs ui", "error", err)
	}
	parts.started("page", shown.Close)
}

// mostOnPageSocket is how many connections there may be to it; others wait.
const mostOnPageSocket = 128

func servePageSocket(path string, shown *page.Server, logger *slog.Logger, parts *parts) error {
	if err := cli.MakeSocketDir(); err != nil {
		return err
	}
	listener, err := rpc.ListenSocket(path)
	if err != nil {
		return err
	}
	// Everybody on this host may connect, and must not be able to use up the files of a process that has locks to serve.
	listener = newFewConns(listener, mostOnPageSocket)
	server := &http.Server{
		IdleTimeout: stopGrace, Handler: shown.SocketHandler(), ConnContext: page.ConnContext, ReadHeaderTimeout: stopGrace,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			logger.Error("the page is not served on its socket any more", "error", err)
		}
	}()
	parts.started("page's socket", func() error { return withGrace(server.Shutdown) })
	return nil
}
