package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"lockfs/cluster"
	"lockfs/cluster/identity"
	"lockfs/cluster/session"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/cmd/lockfs/internal/daemon/supervisor"
	"lockfs/fusefs"
)

// service is a voter, and a mount of it if mountDir is not empty.
type service struct {
	config    cluster.Config
	opTimeout time.Duration
	limits    fusefs.Limits // of the users of the mount
	mountDir  string
	hostName  string          // as the sessions are called
	token     *identity.Token // to enter a cluster with; nil: none
	httpAddr  string          // empty: none
	socket    string          // where commands on this host ask
	forrst    forrstEndpoint
	ready     func()       // called once it can be used
	program   string       // that is run
	inherited *inheritance // nil: nothing

	parts parts
	node  atomic.Pointer[cluster.Node] // nil until it is ready
}

var errNoProgram = errors.New("the mount has ended, for no program could go on with it")

// run starts everything, waits until it is told to end or cannot go on, and stops everything in reverse.
func (s *service) run(ctx context.Context) error {
	go tuneCollector(serverPercent)
	failure := s.start(ctx)
	s.inherited.sayFarewell(ctx)
	supervisor.Stopping()
	s.parts.stop(s.config.Logger)
	s.inherited.sayFarewell(ctx) // if it was told to end just now
	if ctx.Err() != nil && errors.Is(failure, ctx.Err()) {
		return nil // told to end
	}
	return failure
}

func (s *service) start(ctx context.Context) error {
	asked := hangups()
	var err error
	if s.inherited, err = inherit(); err != nil {
		return err
	}
	started := s.inherited == nil // by somebody who waits for it
	if !started {
		s.config.ExpiredLeaseTerm = s.inherited.led
	}
	if s.mountDir != "" && started {
		s.inherited = pickUp(cli.ServerSessionFile(s.config.DataDir), s.mountDir)
	}
	if s.mountDir != "" && s.inherited == nil { // else nobody answers there until it is taken over
		if err := requireHostNamespace(); err != nil {
			return err
		}
		if err := refuseBelow("data directory", "--data", s.config.DataDir, s.mountDir); err != nil {
			return err
		}
		if s.config.BackupDir != "" {
			if err := refuseBelow("directory for backups", "--backup-dir", s.config.BackupDir, s.mountDir); err != nil {
				return err
			}
		}
	}
	functions, err := s.forrst.functions()
	if err != nil {
		return err
	}
	if s.program, err = os.Executable(); err != nil { // before another one takes its place
		return err
	}
	if s.token != nil {
		if err := cluster.Enroll(ctx, s.config, s.token); err != nil {
			return err
		}
	}
	s.config.Metrics = cluster.NewMetrics()
	s.config.Metrics.Registry.MustRegister(CertificateCollector{filepath.Join(s.config.DataDir, "identity")})
	s.config.Version = cli.ProgramVersion()
	taken, err := s.takeOver(ctx)
	if err != nil {
		return err
	}
	var next *upgrade
	if taken != nil {
		next, err = s.standIn(ctx, taken, asked, functions)
	} else {
		next, err = s.startAll(ctx, functions)
	}
	if err != nil {
		return err
	}
	node := s.node.Load()
	var gone <-chan struct{}
	if next != nil {
		gone = next.gone()
	}
	supervisor.Ready()
	if started {
		s.ready()
	}
	for {
		select {
		case <-asked:
			if s.upgrade(ctx, next) {
				return errNoProgram
			}
		case <-ctx.Done():
			return ctx.Err()
		case err := <-node.Failed():
			return err
		case <-gone:
			return s.unmounted(ctx, node)
		}
	}
}

// startAll starts the voter, and mounts once that can be used.
func (s *service) startAll(ctx context.Context, functions http.Handler) (next *upgrade, err error) {
	node, err := s.startNode(ctx, functions, &s.parts)
	if err != nil {
		return nil, err
	}
	s.node.Store(node)
	if s.mountDir == "" {
		s.watch(ctx)
		return nil, nil
	}
	m := s.mount(ctx, node)
	others := s.parts // all that is to be stopped before another program takes over
	if err := s.keep(ctx, m); err != nil {
		return nil, err
	}
	s.watch(ctx, supervisor.Loop{Name: "session", Due: m.client.WatchdogDeadline})
	return s.show(node, m, others), nil
}

// watch has the supervisor told that the daemon is alive.
func (s *service) watch(ctx context.Context, loops ...supervisor.Loop) {
	leading := func() time.Time {
		if node := s.node.Load(); node != nil {
			return node.WatchdogDeadline()
		}
		return time.Now() // it may have to wait for long until it is ready
	}
	supervisor.Watch(ctx, s.config.Logger, append(loops, supervisor.Loop{Name: "leading", Due: leading})...)
}

// startNode starts the voter and all by which it is asked, and waits until it can be used.
func (s *service) startNode(ctx context.Context, functions http.Handler, parts *parts) (*cluster.Node, error) {
	node, err := cluster.Open(s.config)
	if err != nil {
		return nil, err
	}
	parts.started("node", node.Close)
	listener, err := listenHTTP(s.httpAddr, node.Protect)
	if err != nil && s.inherited == nil {
		return nil, fmt.Errorf("listen for HTTP: %w", err)
	} else if err != nil { // programs wait for the mount
		s.config.Logger.Warn("HTTP is not served", "error", err)
	}
	serveHTTP(listener, s.about(), node.Proxy(), node.Handler(), s.config.Metrics.MountMetrics, s.config.Logger, parts)
	serveDebug(s.about(), s.config.Metrics.Registry, s.config.Logger, parts)
	serveSocket(s.socket, node.SocketServer(), s.config.Metrics.MountMetrics, s.config.Logger, parts)
	supervisor.Status("waits until a majority of the servers answers")
	if err := node.WaitReady(ctx); err != nil {
		return nil, firstFailure(node, err)
	}
	if err := s.forrst.serve(ctx, node, session.Config{Host: s.hostName, OpTimeout: s.opTimeout, Logger: s.config.Logger}, functions, parts); err != nil {
		return nil, firstFailure(node, err)
	}
	return node, nil
}

// show has others see the mount, and answers what another program can go on with.
func (s *service) show(node *cluster.Node, m serverMount, others parts) *upgrade {
	s.config.Metrics.SetMount(m.client)
	node.SetMount(s.mountDir)
	next := s.next(m)
	next.node, next.others = node, others
	return next
}

func (s *service) next(m serverMount) *upgrade {
	return &upgrade{program: s.program, mounted: m.mounted, client: m.client, guard: m.guard, logger: s.config.Logger}
}

// upgrade returns if there is none, and answers whether the mount is over. A server without a mount is started anew for that.
func (s *service) upgrade(ctx context.Context, next *upgrade) (over bool) {
	if next == nil {
		s.config.Logger.Warn("nothing is mounted: start this server anew for another program")
		return false
	}
	return next.attempt(ctx)
}

// about is what the process says of itself. One without a network is `lockfs dev`.
func (s *service) about() cli.Daemon {
	about := cli.Daemon{Kind: "server", Of: s.config.Name, Data: dataDirOf(s.config.DataDir), Mount: s.mountDir}
	if s.config.Address == "" {
		about.Kind, about.Of = "dev", s.mountDir
	}
	return about
}

// unmounted goes on as a voter without a mount: others depend on it. A node alone has nothing left to do.
func (s *service) unmounted(ctx context.Context, node *cluster.Node) error {
	s.config.Logger.Warn("unmounted from outside", "dir", s.mountDir)
	if s.config.Address == "" {
		return nil
	}
	s.config.Metrics.SetMount(nil)
	node.SetMount("")
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-node.Failed():
		return err
	}
}

// firstFailure prefers the reason why the node cannot go on to what followed from it.
func firstFailure(node *cluster.Node, err error) error {
	select {
	case failure := <-node.Failed():
		return failure
	default:
		return err
	}
}
