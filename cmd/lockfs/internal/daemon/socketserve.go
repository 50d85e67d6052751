package daemon

import (
	"log/slog"
	"net"

	"lockfs/cluster"
	"lockfs/cluster/rpc"
	"lockfs/cmd/lockfs/internal/cli"
)

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
