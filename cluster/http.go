package cluster

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"lockfs/cluster/rpc"
)

const healthTimeout = 2 * time.Second

// protocolHTTP is what the endpoints speak (ALPN).
const protocolHTTP = "http/1.1"

// Protect has only hosts of the cluster, by their certificates, reach what is served on a listener, unless only this host reaches that
// anyway, or there are no certificates.
func (n *Node) Protect(listener net.Listener) net.Listener {
	address, isTCP := listener.Addr().(*net.TCPAddr)
	if n.security == nil || isTCP && address.IP.IsLoopback() {
		return listener
	}
	return tls.NewListener(listener, n.security.credentials.ServerConfig(n.security.judge, protocolHTTP))
}

// Handler serves /healthz and /metrics.
func (n *Node) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(n.cfg.Metrics.Registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", n.healthz)
	return mux
}

// healthz answers 200 when a linearizable read from this node succeeds, else 503 with the reason.
func (n *Node) healthz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), healthTimeout)
	defer cancel()
	if _, err := rpc.Ask(ctx, rpc.NewRouter(n.peers, n), rpc.Node.Execute, statFs); err != nil {
		http.Error(w, "unavailable: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	if n.cfg.insecure() {
		_, _ = fmt.Fprintln(w, "ok, insecure")
		return
	}
	_, _ = fmt.Fprintln(w, "ok")
}
