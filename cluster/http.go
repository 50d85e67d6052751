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
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

const healthTimeout = 2 * time.Second

// protocolHTTP is the ALPN protocol of the endpoints.
const protocolHTTP = "http/1.1"

// Protect limits a listener to hosts of the cluster, by their certificates. A loopback listener, or one
// without certificates, stays as it is.
func (n *Node) Protect(listener net.Listener) net.Listener {
	address, isTCP := listener.Addr().(*net.TCPAddr)
	if n.security == nil || isTCP && address.IP.IsLoopback() {
		return listener
	}
	return tls.NewListener(listener, n.security.credentials.ServerConfig(n.security.verifier, protocolHTTP))
}

// Handler serves /healthz and /metrics.
func (n *Node) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(n.cfg.Metrics.Registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", n.healthz)
	return mux
}

// healthz answers 200 if a linearizable read from this node succeeds, else 503 with the reason. Alarms
// and failed backups are only mentioned.
func (n *Node) healthz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), healthTimeout)
	defer cancel()
	if _, err := rpc.Ask(ctx, n.router, rpc.Node.Execute, statFs); err != nil {
		http.Error(w, "unavailable: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	health := "ok"
	if n.cfg.insecure() {
		health = "ok, insecure"
	}
	var alarms []*storepb.Alarm
	n.fsm.View(func(ns *namespace.Namespace) { alarms = ns.Alarms() })
	if len(alarms) > 0 {
		health += ", with alarms"
	}
	_, _ = fmt.Fprintln(w, health)
	for _, alarm := range alarms {
		_, _ = fmt.Fprintf(w, "alarm %d: %s: %s\n", alarm.GetNumber(), alarm.GetKind(), alarm.GetText())
	}
	if failure := n.backupSchedule.failure.Load(); failure != nil {
		_, _ = fmt.Fprintln(w, "the last backup failed:", *failure)
	}
}
