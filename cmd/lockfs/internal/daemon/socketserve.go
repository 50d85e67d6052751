package daemon

import (
	"log/slog"
	"net"

	"lockfs/cluster"
	"lockfs/cluster/rpc"
	"lockfs/cmd/lockfs/internal/cli"
)

// serveSocket answers commands on this host, for as long as the parts run. A daemon does its work without it, too.
func serveSocket(path string, server *rpc.Server, metrics *cluster.MountMetrics, logger *slog.Logger, parts *parts) {
	listener, err := listenSocket(path)
	if err != nil {
		logger.Warn("commands on this host do not find this process", "error", err)
		return
	}
	metrics.AddBudgets(server.Budgets()...)
	go func() { _ = server.Serve(listener) }() // it ends with the listener
	parts.started("socket", func() error {
		err := listener.Close() // removes it
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
