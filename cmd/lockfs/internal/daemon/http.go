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

// protect is cluster.Node.Protect for a host without a server. It refuses removed servers and revoked hosts
// by the roster of the keepalives.
func protect(listener net.Listener, credentials *identity.Credentials, judge identity.Verifier) net.Listener {
	if address, isTCP := listener.Addr().(*net.TCPAddr); isTCP && address.IP.IsLoopback() {
		return listener
	}
	return tls.NewListener(listener, credentials.ServerConfig(judge, protocolHTTP))
}

// protocolHTTP is the ALPN protocol of the endpoint.
const protocolHTTP = "http/1.1"

// serveOn serves HTTP on an endpoint until parts end. what is its name in messages.
func serveOn(e endpoint, handler http.Handler, what string, logger *slog.Logger, parts *parts) {
	if address, isTCP := e.limit.Addr().(*net.TCPAddr); isTCP && address.IP.IsLoopback() {
		handler = loopback.Guard(handler, e.names...)
	}
	server := e.limit.server(handler, e.connContext, logger)
	go func() {
		if err := server.Serve(e.listener); !errors.Is(err, http.ErrServerClosed) {
			logger.Error("an HTTP endpoint has failed", "endpoint", what, "error", err)
		}
	}()
	parts.started(what, func() error { return withGrace(server.Shutdown) })
}

// healthTimeout is the time limit of a health check of a mount.
const healthTimeout = 2 * time.Second

// mountHandler serves /metrics and /healthz. /healthz is 200 if a linearizable read through the mount's
// session succeeds, else 503 with the reason.
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
