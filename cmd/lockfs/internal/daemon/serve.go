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
	"lockfs/cmd/lockfs/internal/daemon/sdnotify"
	"lockfs/fusefs"
)

// service is a voter, and its mount if mountDir is not empty.
type service struct {
	config    cluster.Config
	opTimeout time.Duration
	limits    fusefs.Limits // of the users of the mount
	mountDir  string
	hostName  string          // name of its sessions
	token     *identity.Token // to join with, or nil
	httpAddr  string          // empty: no HTTP
	socket    string          // for commands on this host
	forrst    forrstEndpoint
	ready     func()        // called at the end of the start
	program   string        // path of this program
	inherited *handoffState // may be nil

	parts parts
	node  atomic.Pointer[cluster.Node] // nil during the start
}

var errNoProgram = errors.New("the mount has ended because no program could take it over")

// run starts everything, waits for the end or a failure, and stops everything in reverse order.
func (s *service) run(ctx context.Context) error {
	go tuneCollector(serverPercent)
	failure := s.start(ctx)
	s.inherited.announceEnd(ctx)
	sdnotify.Stopping()
	s.parts.stop(s.config.Logger)
	s.inherited.announceEnd(ctx) // after a signal during the takeover
	if ctx.Err() != nil && errors.Is(failure, ctx.Err()) {
		return nil // stopped on request
	}
	return failure
}

func (s *service) start(ctx context.Context) error {
	asked := hangups()
	var err error
	if s.inherited, err = inherit(); err != nil {
		return err
	}
	started := s.inherited == nil // a parent process waits
	if !started {
		s.config.ExpiredLeaseTerm = s.inherited.led
	}
	if s.mountDir != "" && started {
		s.inherited = pickUp(cli.ServerSessionFile(s.config.DataDir), s.mountDir)
	}
	if s.mountDir != "" && s.inherited == nil { // an inherited mount would not respond before the takeover
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
	if s.program, err = os.Executable(); err != nil { // before an upgrade replaces it
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
		next, err = s.relayMount(ctx, taken, asked, functions)
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
	sdnotify.Ready()
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

// startAll starts the voter, and then mounts.
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
	others := s.parts // all parts to stop before an upgrade
	if err := s.keep(ctx, m); err != nil {
		return nil, err
	}
	s.watch(ctx, sdnotify.Loop{Name: "session", Due: m.client.WatchdogDeadline})
	return s.show(node, m, others), nil
}

// watch sends the watchdog messages of the supervisor.
func (s *service) watch(ctx context.Context, loops ...sdnotify.Loop) {
	leading := func() time.Time {
		if node := s.node.Load(); node != nil {
			return node.WatchdogDeadline()
		}
		return time.Now() // the start may take long
	}
	sdnotify.Watch(ctx, s.config.Logger, append(loops, sdnotify.Loop{Name: "leading", Due: leading})...)
}

// startNode starts the voter and its endpoints, and waits until it is ready.
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
	sdnotify.Status("waiting for a quorum of servers")
	if err := node.WaitReady(ctx); err != nil {
		return nil, firstFailure(node, err)
	}
	endpoint := session.Config{Host: s.hostName, OpTimeout: s.opTimeout, Logger: s.config.Logger, Program: cli.ProgramVersion()}
	if err := s.forrst.serve(ctx, node, endpoint, functions, parts); err != nil {
		return nil, firstFailure(node, err)
	}
	return node, nil
}

// show makes the mount visible to other parts, and returns its upgrade.
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

// upgrade returns if there was no upgrade, and reports whether the mount is over. Without a mount, a server
// is restarted instead.
func (s *service) upgrade(ctx context.Context, next *upgrade) (over bool) {
	if next == nil {
		s.config.Logger.Warn("nothing is mounted: restart this server to run another program")
		return false
	}
	return next.attempt(ctx)
}

// about returns the description of the process. Without a network it is `lockfs dev`.
func (s *service) about() cli.Daemon {
	about := cli.Daemon{Kind: "server", Of: s.config.Name, Data: dataDirOf(s.config.DataDir), Mount: s.mountDir}
	if s.config.Address == "" {
		about.Kind, about.Of = "dev", s.mountDir
	}
	return about
}

// unmounted continues as a voter without a mount, because other hosts depend on it. A single node ends.
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

// firstFailure prefers the failure of the node to its consequences.
func firstFailure(node *cluster.Node, err error) error {
	select {
	case failure := <-node.Failed():
		return failure
	default:
		return err
	}
}
