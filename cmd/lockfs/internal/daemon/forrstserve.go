package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/pflag"

	"lockfs/cluster"
	"lockfs/cluster/forrststore"
	"lockfs/cluster/loopback"
	"lockfs/cluster/session"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/formats/forrst"
)

// forrstEndpoint is where a server takes requests of the Forrst protocol, and who has the functions.
type forrstEndpoint struct {
	addr     string // empty: nowhere
	upstream string // empty: nobody
	replay   time.Duration
}

func (f *forrstEndpoint) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.addr, "forrst-addr", "", "where POST "+cli.ForrstPath+" is served, as in "+cli.DefaultForrstAddress+
		"; elsewhere than on this host only for hosts of the cluster, unless --insecure; empty: nowhere; without a host: only on this one")
	flags.StringVar(&f.upstream, "forrst-upstream", "",
		"URL of the server with the functions; calls reach it while they hold their locks")
	flags.DurationVar(&f.replay, "forrst-replay", time.Minute, "how long replies are kept, in "+forrststore.RepliesDir+
		", for repeated requests (header "+forrst.ReplayHeader+"); 0: each request is a new call; the same on all servers")
}

// functions is who has the functions, nil if nobody has.
func (f *forrstEndpoint) functions() (http.Handler, error) {
	if f.replay < 0 {
		return nil, fmt.Errorf("--forrst-replay %v: it must not be negative", f.replay)
	}
	if f.upstream == "" {
		return nil, nil
	}
	if f.addr == "" {
		return nil, errors.New("--forrst-upstream needs --forrst-addr")
	}
	u, err := forrst.ParseUpstream(f.upstream)
	if err != nil {
		return nil, fmt.Errorf("--forrst-upstream %q: %w; give one like http://127.0.0.1:9000/rpc", f.upstream, err)
	}
	return &forrst.Upstream{URL: u}, nil
}

// listen listens at the endpoint's address: on loopback if the address has no host.
func (f *forrstEndpoint) listen(protect func(net.Listener) net.Listener) (endpoint, error) {
	host, port, err := net.SplitHostPort(f.addr)
	if err != nil {
		return endpoint{}, fmt.Errorf("--forrst-addr %q: %w", f.addr, err)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return endpoint{}, fmt.Errorf("listen for Forrst requests: %w", err)
	}
	return limitedEndpoint(listener, endpointConns, protect), nil
}

// serve serves the endpoint of a node, in a session of its own that is opened as the config says.
func (f *forrstEndpoint) serve(ctx context.Context, node *cluster.Node, config session.Config, functions http.Handler, parts *parts) error {
	if f.addr == "" {
		return nil
	}
	config.NoLockDelay = true
	client, err := node.OpenClient(ctx, config)
	if err != nil {
		return err
	}
	parts.started("Forrst session", func() error { return withGrace(client.Close) })
	store, err := forrststore.Open(ctx, client)
	if err != nil {
		return fmt.Errorf("locks of the Forrst endpoint: %w", err)
	}
	e, err := f.listen(node.Protect)
	if err != nil {
		return err
	}
	if address, ok := e.limit.Addr().(*net.TCPAddr); ok && !address.IP.IsLoopback() && e.listener == e.limit {
		config.Logger.Warn("every program that reaches the Forrst endpoint can take and release locks", "address", address)
	}
	mux := http.NewServeMux()
	mux.Handle(cli.ForrstPath, loopback.RequireJSON(&forrst.Runner{
		Store: &untilStop{store, ctx}, Next: functions, Replay: f.replay, Logger: config.Logger,
		MaxWaiting: endpointConns / 2, MaxCalls: endpointConns * 3 / 4,
	}))
	serveOn(e, mux, "Forrst", config.Logger, parts)
	return nil
}

// untilStop is a store in which nobody waits any longer once the server is told to stop: another one may be asked.
// Calls that are under way go on.
type untilStop struct {
	forrst.Store
	serving context.Context
}

var errStopping = errors.New("this server is stopping; ask another one")

// Acquire is part of [forrst.Store].
func (s *untilStop) Acquire(ctx context.Context, want forrst.Want) (*forrst.Grant, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.serving, cancel)()
	grant, err := s.Store.Acquire(ctx, want)
	if errors.Is(err, context.Canceled) && s.serving.Err() != nil {
		err = errStopping
	}
	return grant, err
}
