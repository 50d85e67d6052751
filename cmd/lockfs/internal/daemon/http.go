package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"lockfs/cluster"
	"lockfs/cluster/identity"
	"lockfs/cluster/loopback"
	"lockfs/cluster/session"
	"lockfs/raftstore/storepb"
)

// protect is cluster.Node.Protect for a host that is no server. It judges others by the roster that keepalives tell: a server that was removed, or a
// host that was revoked, is refused.
func protect(listener net.Listener, credentials *identity.Credentials, judge identity.Verifier) net.Listener {
	if address, isTCP := listener.Addr().(*net.TCPAddr); isTCP && address.IP.IsLoopback() {
		return listener
	}
	return tls.NewListener(listener, credentials.ServerConfig(judge, protocolHTTP))
}

// protocolHTTP is what the endpoint speaks (ALPN).
const protocolHTTP = "http/1.1"

// serveOn serves HTTP on an endpoint until parts end. what is its name in messages.
func serveOn(e endpoint, handler http.Handler, what string, logger *slog.Logger, parts *parts) {
	if address, isTCP := e.limit.Addr().(*net.TCPAddr); isTCP && address.IP.IsLoopback() {
		handler = loopback.Guard(handler, e.names...)
	}
	server := e.limit.server(handler, e.connContext, logger)
	go func() {
		if err := server.Serve(e.listener); !errors.Is(err, http.ErrServerClosed) {
			logger.Error("an HTTP endpoint serves no longer", "endpoint", what, "error", err)
		}
	}()
	parts.started(what, func() error { return withGrace(server.Shutdown) })
}

// healthTimeout is how long a mount may take to prove that it is of use.
const healthTimeout = 2 * time.Second

// mountHandler serves /metrics, and /healthz, which is 200 when a linearizable read through the mount's session succeeds, else
// 503 with the reason.
func mountHandler(client *session.Client, metrics *cluster.MountMetrics) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), healthTimeout)
		defer cancel()
		_, err := client.Query(ctx, &storepb.Query{Query: &storepb.Query_StatFs{StatFs: &storepb.StatFs{}}})
		if err == nil && client.Remaining() == 0 {
			err = errors.New("the session of the mount is not confirmed")
		}
		if err != nil {
			http.Error(w, "unavailable: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprintln(w, "ok")
	})
	return mux
}
