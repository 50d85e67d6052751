package cluster

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"lockfs/cluster/rpc"
)

const healthTimeout = 2 * time.Second

// Handler serves /healthz and /metrics.
func (n *Node) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(n.cfg.Metrics.Registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", n.healthz)
	return mux
}

// healthz answers 200 when a linearizable read from this node succeeds, else 503 with the reason. It is as healthy without backups,
// but says that they fail.
func (n *Node) healthz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), healthTimeout)
	defer cancel()
	if _, err := rpc.Ask(ctx, rpc.NewRouter(n.peers, n), rpc.Node.Execute, statFs); err != nil {
		http.Error(w, "unavailable: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	ok := "ok"
	if n.cfg.insecure() {
		ok = "ok, insecure"
	}
	_, _ = fmt.Fprintln(w, ok)
	if failure := n.ownBackups.failure.Load(); failure != nil {
		_, _ = fmt.Fprintln(w, "the last backup failed:", *failure)
	}
}
