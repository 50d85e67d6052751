package daemon

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"

	"lockfs/cluster"
	"lockfs/cluster/page"
	"lockfs/cluster/rpc"
	"lockfs/cmd/lockfs/internal/cli"
)

// endpoint is an HTTP listener with a limited number of connections.
type endpoint struct {
	listener    net.Listener // nil: no endpoint
	limit       *connLimit   // listener below TLS
	connContext func(context.Context, net.Conn) context.Context
	url         string   // URL for programs on this host
	names       []string // host names besides localhost, if only this host reaches the endpoint
}

// listenHTTP listens on an address; empty: no endpoint. protect authenticates clients; nil: no
// authentication.
func listenHTTP(address string, protect func(net.Listener) net.Listener) (endpoint, error) {
	if address == "" {
		return endpoint{}, nil
	}
	plain, err := net.Listen("tcp", address)
	if err != nil {
		return endpoint{}, err
	}
	e := limitedEndpoint(plain, endpointConns, protect)
	scheme := "http://"
	if e.listener != e.limit {
		scheme = "https://"
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

// limitedEndpoint limits the connections of a listener. protect authenticates clients; nil: no
// authentication.
func limitedEndpoint(plain net.Listener, most int, protect func(net.Listener) net.Listener) endpoint {
	limit := limitConns(plain, most)
	e := endpoint{listener: limit, limit: limit}
	if protect != nil {
		e.listener = protect(limit)
	}
	return e
}

// serveHTTP serves an endpoint, if any, and the page of `lockfs ui` on a socket. other serves programs.
func serveHTTP(e endpoint, about cli.Daemon, relay *cluster.Proxy, other http.Handler, metrics *cluster.MountMetrics, logger *slog.Logger, parts *parts) {
	shown := page.New(page.Config{
		Front: relay.InProcess(), Administers: relay.MayAdminister, Host: relay.Host(), Mount: about.Mount, Address: e.url, Logger: logger,
	})
	metrics.AddBudgets(shown.Budgets()...)
	if e.listener != nil {
		calls := callBudget("HTTP", endpointConns-mostScrapes-endpointConns/8)
		metrics.AddBudgets(calls)
		mux := http.NewServeMux()
		checks := healthChecks(other)
		mux.Handle("GET /metrics", checks)
		mux.Handle("GET /healthz", checks)
		mux.Handle("/", withinBudget(calls, shown.Handler()))
		e.names = append(e.names, shown.Name(), relay.Host())
		serveOn(e, mux, "HTTP", logger, parts)
	}
	if err := servePageSocket(cli.PageSocket(about.Kind, about.Of), shown, metrics, logger, parts); err != nil {
		logger.Warn("the socket for lockfs ui is missing", "error", err)
	}
	parts.started("page", shown.Close)
}

// pageSocketConns is the maximum number of connections to the page's socket.
const pageSocketConns = 256

func servePageSocket(path string, shown *page.Server, metrics *cluster.MountMetrics, logger *slog.Logger, parts *parts) error {
	if err := cli.MakeSocketDir(); err != nil {
		return err
	}
	listener, err := rpc.ListenSocket(path)
	if err != nil {
		return err
	}
	// All users of the host may connect, but must not exhaust the file descriptors.
	e := limitedEndpoint(listener, pageSocketConns, nil)
	e.connContext = page.ConnContext
	calls := callBudget("the socket of the page", pageSocketConns)
	metrics.AddBudgets(calls)
	serveOn(e, withinBudget(calls, shown.SocketHandler()), "the page's socket", logger, parts)
	return nil
}
