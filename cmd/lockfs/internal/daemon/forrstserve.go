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

// forrstEndpoint is the Forrst endpoint of a server and the upstream server of the functions.
type forrstEndpoint struct {
	addr     string // empty: no endpoint
	upstream string // empty: no functions
	replay   time.Duration
}

func (f *forrstEndpoint) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.addr, "forrst-addr", "", "address of POST "+cli.ForrstPath+", such as "+cli.DefaultForrstAddress+
		": other than loopback only for hosts of the cluster, unless --insecure; empty: none")
	flags.StringVar(&f.upstream, "forrst-upstream", "",
		"URL of the server with the functions, for calls with their locks held")
	flags.DurationVar(&f.replay, "forrst-replay", time.Minute, "time for which replies are kept in "+forrststore.RepliesDir+
		" for repeated requests (header "+forrst.ReplayHeader+"); 0: each request is a new call; the same on all servers")
}

// functions returns a proxy to the upstream server, or nil.
func (f *forrstEndpoint) functions() (http.Handler, error) {
	if f.replay < 0 {
		return nil, fmt.Errorf("--forrst-replay %v is negative: give 0 or more", f.replay)
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

// listen listens on the endpoint's address, on loopback if the address has no host.
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

// serve serves the endpoint of a node in a session of its own.
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
		return fmt.Errorf("session for locks of the Forrst endpoint: %w", err)
	}
	e, err := f.listen(node.Protect)
	if err != nil {
		return err
	}
	if address, ok := e.limit.Addr().(*net.TCPAddr); ok && !address.IP.IsLoopback() && e.listener == e.limit {
		config.Logger.Warn("every program with access to the Forrst endpoint can acquire and release locks", "address", address)
	}
	mux := http.NewServeMux()
	mux.Handle(cli.ForrstPath, loopback.RequireJSON(&forrst.Runner{
		Store: &untilStop{store, ctx}, Next: functions, Replay: f.replay, Logger: config.Logger,
		MaxWaiting: endpointConns / 2, MaxCalls: endpointConns * 3 / 4,
	}))
	serveOn(e, mux, "Forrst", config.Logger, parts)
	return nil
}

// untilStop is a store without waits during the stop of the server: clients retry on another one. Current
// calls continue.
type untilStop struct {
	forrst.Store
	serving context.Context
}

var errStopping = errors.New("this server is stopping: retry on another one")

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
