package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
}

// run starts everything, waits until it is told to end or cannot go on, and stops everything in reverse.
func (s *service) run(ctx context.Context) error {
	go tuneCollector()
	failure := s.start(ctx)
	supervisor.Stopping()
	s.parts.stop(s.config.Logger)
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
	if s.mountDir != "" && started {
		s.inherited = pickUp(s.sessionFile(), s.mountDir)
	}
	defer s.inherited.sayFarewell(ctx)
	if s.mountDir != "" && s.inherited == nil { // else nobody answers there until it is taken over
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
	node, err := cluster.Open(s.config)
	if err != nil {
		return err
	}
	s.parts.started("node", node.Close)
	http, err := listenHTTP(s.httpAddr, node.Protect)
	if err != nil && s.inherited == nil {
		return fmt.Errorf("listen for HTTP: %w", err)
	} else if err != nil { // programs wait for the mount
		s.config.Logger.Warn("HTTP is not served", "error", err)
	}
	serveHTTP(http, s.about(), node.Relay(), node.Handler(), s.config.Logger, &s.parts)
	serveDebug(s.about(), s.config.Metrics.Registry, s.config.Logger, &s.parts)
	serveSocket(s.socket, node.SocketServer(), s.config.Logger, &s.parts)
	supervisor.Status("waits until a majority of the servers answers")
	if err := node.WaitReady(ctx); err != nil {
		return firstFailure(node, err)
	}
	if err := s.forrst.serve(ctx, node, session.Config{Host: s.hostName, OpTimeout: s.opTimeout, Logger: s.config.Logger}, functions, &s.parts); err != nil {
		return firstFailure(node, err)
	}
	loops := []supervisor.Loop{{Name: "leading", Due: node.RoundDue}}
	gone := make(chan struct{})
	var next *upgrade
	if s.mountDir != "" {
		if next, err = s.mount(ctx, node); err != nil {
			return err
		}
		loops = append(loops, supervisor.Loop{Name: "session", Due: next.client.RoundDue})
		go func() {
			next.mounted.Wait()
			close(gone)
		}()
	}
	supervisor.Ready()
	if started {
		s.ready()
	}
	supervisor.Watch(ctx, s.config.Logger, loops...)
	for {
		select {
		case <-asked:
			if s.upgrade(ctx, next) {
				return errors.New("the mount has ended, for no program could go on with it")
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

// sessionFile is where a later process finds the session of the mount.
func (s *service) sessionFile() string { return filepath.Join(s.config.DataDir, "mount.session") }

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

func (s *service) mount(ctx context.Context, node *cluster.Node) (*upgrade, error) {
	config := session.Config{
		Host: s.hostName, OpTimeout: s.opTimeout, Logger: s.config.Logger,
		SessionFile:  s.sessionFile(),
		MachineFiles: append(machineFiles(), filepath.Join(s.config.DataDir, "machine-id")),
	}
	if s.inherited != nil {
		config.Inherited = s.inherited.session
	}
	client, err := node.OpenClient(ctx, config)
	if err != nil {
		return nil, err
	}
	others := s.parts // all that is to be stopped before another program takes over
	mounted, guard, err := mount(s.mountDir, client, fusefs.Options{Logger: s.config.Logger, Observer: s.config.Metrics.ObserveMount}, s.inherited)
	if err != nil && ctx.Err() == nil && s.inherited.isGuarded() { // the next process goes on with the session
		return nil, err
	}
	if err != nil {
		s.parts.started("session", func() error { return endSession(client, nil) })
		return nil, err
	}
	s.parts.started("connection", func() error { return mounted.End(client.Answers()) })
	s.parts.started("session", func() error { return endSession(client, mounted) })
	s.parts.started("mount", func() error {
		guard.farewell()
		return mounted.Unmount()
	})
	s.config.Metrics.SetMount(client)
	node.SetMount(s.mountDir)
	return &upgrade{program: s.program, mounted: mounted, client: client, guard: guard, others: others, logger: s.config.Logger}, nil
}
