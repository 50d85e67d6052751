package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"lockfs/cluster"
	"lockfs/cluster/process"
	"lockfs/cluster/session"
	"lockfs/fusefs"
	"lockfs/fusefs/observation"
)

// hostName is how sessions and lock files name this host.
func hostName() (string, error) {
	name, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("name of this host: %w", err)
	}
	return name, nil
}

// stopGrace is how long a part may take to say farewell to others.
const stopGrace = 3 * time.Second

// service is a voter, and a mount of it if mountDir is not empty.
type service struct {
	config    cluster.Config
	opTimeout time.Duration
	mountDir  string
	hostName  string // as the sessions are called
	httpAddr  string // empty: none
	forrst    forrstEndpoint
	ready     func() // called once it can be used

	parts []part // in the order in which they were started
}

// part is what has been started and is to be stopped.
type part struct {
	name string
	stop func() error
}

// stopInTime gives up on a part that hangs, on a disk that does not answer for instance.
func (p part) stopInTime() error {
	stopped := make(chan error, 1)
	go func() { stopped <- p.stop() }()
	select {
	case err := <-stopped:
		return err
	case <-time.After(2 * stopGrace):
		return errors.New("it hangs")
	}
}

// run starts everything, waits until it is told to end or cannot go on, and stops everything in reverse.
func (s *service) run(ctx context.Context) error {
	go tuneCollector()
	failure := s.start(ctx)
	for i := len(s.parts) - 1; i >= 0; i-- {
		if err := s.parts[i].stopInTime(); err != nil {
			s.config.Logger.Warn("did not stop cleanly", "part", s.parts[i].name, "error", err)
		}
	}
	if ctx.Err() != nil && errors.Is(failure, ctx.Err()) {
		return nil // told to end
	}
	return failure
}

func (s *service) start(ctx context.Context) error {
	if s.mountDir != "" {
		if err := refuseBelow(s.config.DataDir, s.mountDir); err != nil {
			return err
		}
	}
	functions, err := s.forrst.functions()
	if err != nil {
		return err
	}
	s.config.Metrics = cluster.NewMetrics()
	s.config.Version = programVersion()
	node, err := cluster.Open(s.config)
	if err != nil {
		return err
	}
	s.started("node", node.Close)
	if err := s.serveHTTP(node); err != nil {
		return err
	}
	if err := node.WaitReady(ctx); err != nil {
		return firstFailure(node, err)
	}
	if err := s.serveForrst(ctx, node, functions); err != nil {
		return firstFailure(node, err)
	}
	gone := make(chan struct{})
	if s.mountDir != "" {
		mounted, err := s.mount(ctx, node)
		if err != nil {
			return err
		}
		go func() {
			mounted.Wait()
			close(gone)
		}()
	}
	s.ready()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-node.Failed():
		return err
	case <-gone:
		return s.unmounted(ctx, node)
	}
}

// unmounted goes on as a voter without a mount: others depend on it. A node alone has nothing left to do.
func (s *service) unmounted(ctx context.Context, node *cluster.Node) error {
	s.config.Logger.Warn("unmounted from outside", "dir", s.mountDir)
	if s.config.RaftAddress == "" {
		return nil
	}
	s.config.Metrics.SetMounts(0)
	node.SetMount("")
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-node.Failed():
		return err
	}
}

func (s *service) started(name string, stop func() error) {
	s.parts = append(s.parts, part{name, stop})
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

func (s *service) mount(ctx context.Context, node *cluster.Node) (*fusefs.Mounted, error) {
	client, err := node.OpenClient(ctx, session.Config{
		Host: s.hostName, OpTimeout: s.opTimeout, Logger: s.config.Logger,
		SessionFile:  filepath.Join(s.config.DataDir, "mount.session"),
		MachineFiles: append(machineFiles(), filepath.Join(s.config.DataDir, "machine-id")),
	})
	if err != nil {
		return nil, err
	}
	mounted, err := mount(s.mountDir, client, fusefs.Options{Logger: s.config.Logger, Observer: s.config.Metrics.ObserveMount})
	if err != nil {
		s.started("session", func() error { return endSession(client, nil) })
		return nil, err
	}
	s.started("connection", func() error { return mounted.End(client.Answers()) })
	s.started("session", func() error { return endSession(client, mounted) })
	s.started("mount", mounted.Unmount)
	s.config.Metrics.SetMounts(1)
	node.SetMount(s.mountDir)
	return mounted, nil
}

// mount mounts, under guard, in a directory that is created if it is missing.
func mount(dir string, client *session.Client, options fusefs.Options) (*fusefs.Mounted, error) {
	if err := makeMountPoint(dir); err != nil {
		return nil, err
	}
	options.Family = family
	mounted, err := fusefs.Mount(dir, client, options)
	if err != nil {
		return nil, err
	}
	if err := startGuard(client, mounted, options.Logger); err != nil {
		return nil, errors.Join(err, mounted.Unmount(), mounted.End(nil))
	}
	return mounted, nil
}

// endSession says farewell for a mount. If that is nil, nobody knows what programs have: it failed, perhaps after it could be
// used.
func endSession(client *session.Client, mounted *fusefs.Mounted) error {
	return withGrace(func(ctx context.Context) error {
		return client.Leave(ctx, func() bool { return mounted == nil || mounted.InUse() })
	})
}

// family tells fusefs who makes a request.
func family(thread uint32) iter.Seq[observation.Process] {
	return func(yield func(observation.Process) bool) {
		for id := range process.Family(int(thread)) {
			if !yield(observation.Process{PID: id.PID, Start: id.Start}) {
				return
			}
		}
	}
}

// makeMountPoint creates a directory that is missing. What a dead process left mounted there is for
// fusefs to clean up.
func makeMountPoint(dir string) error {
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("mount point: %w", err)
	}
	return nil
}

func (s *service) serveHTTP(node *cluster.Node) error {
	if s.httpAddr == "" {
		return nil
	}
	listener, err := net.Listen("tcp", s.httpAddr)
	if err != nil {
		return fmt.Errorf("listen for HTTP: %w", err)
	}
	server := &http.Server{
		Handler: node.Handler(), ReadHeaderTimeout: stopGrace,
		ErrorLog: slog.NewLogLogger(s.config.Logger.Handler(), slog.LevelWarn),
	}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.config.Logger.Error("HTTP is not served any more", "error", err)
		}
	}()
	s.started("HTTP", func() error { return withGrace(server.Shutdown) })
	return nil
}

func withGrace(stop func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopGrace)
	defer cancel()
	return stop(ctx)
}

// absolute keeps a directory's meaning when it is shown to somebody elsewhere.
func absolute(dir string) (string, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("directory %q: %w", dir, err)
	}
	return path, nil
}
