package daemon

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"lockfs/cluster"
	"lockfs/cluster/session"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/cmd/lockfs/internal/daemon/supervisor"
	"lockfs/formats/pause"
	"lockfs/fusefs"
)

// serverMount is the mount of a server, or why there is none.
type serverMount struct {
	client  *session.Client // nil: none could be opened
	mounted *fusefs.Mounted
	guard   *guardKeeper
	err     error
}

// serversFile is where a later process finds the other servers, through which it goes on with the mount before it is a server itself.
func (s *service) serversFile() string { return filepath.Join(s.config.DataDir, "mount.servers") }

func (s *service) sessionConfig() session.Config {
	config := session.Config{
		Host: s.hostName, OpTimeout: s.opTimeout, Logger: s.config.Logger,
		MachineFiles: append(machineFiles(), filepath.Join(s.config.DataDir, "machine-id")),
	}
	if s.inherited != nil {
		config.Inherited = s.inherited.session
	}
	keeper := &otherServers{path: s.serversFile(), own: cmp.Or(s.config.Advertise, s.config.Address), logger: s.config.Logger}
	config.Heard = keeper.heard
	return config
}

// mount mounts through the node of this process.
func (s *service) mount(ctx context.Context, node *cluster.Node) serverMount {
	config := s.sessionConfig()
	if s.inherited == nil {
		var err error
		if config.SessionFile, err = cli.LinkSessionFile(s.config.DataDir, node.ID(), s.mountDir); err != nil {
			s.config.Logger.Warn("a process after this one could not go on with the mount", "error", err)
		}
	}
	client, err := node.OpenClient(ctx, config)
	return s.mountWith(client, err)
}

// takenOver is a mount that goes on before there is a server.
type takenOver struct {
	begun   chan *session.Client // delivers the client once it can turn to a node; not if there is none
	mounted chan serverMount
}

// takeOver goes on with the mount of the program before, through other servers, while this one is started: programs wait for the mount, and
// the start takes the longer the more there is in the log and the state. It answers nil if no other server is known.
func (s *service) takeOver(ctx context.Context) (*takenOver, error) {
	if s.inherited == nil {
		return nil, nil
	}
	others, err := readServers(s.serversFile())
	if err != nil {
		s.config.Logger.Warn("the mount waits for this server", "error", err)
	}
	if len(others) == 0 {
		return nil, nil
	}
	config := s.sessionConfig()
	if !s.config.Insecure {
		if config.Security, err = cluster.LoadTLS(s.config.DataDir); err != nil {
			return nil, err
		}
	}
	taken := &takenOver{make(chan *session.Client, 1), make(chan serverMount, 1)}
	config.Begun = func(client *session.Client) { taken.begun <- client }
	go func() { taken.mounted <- s.mountWith(session.Dial(ctx, others, config)) }()
	return taken, nil
}

func (s *service) mountWith(client *session.Client, err error) serverMount {
	if err != nil {
		return serverMount{err: err}
	}
	m := serverMount{client: client}
	budgets := fusefs.NewBudgets(s.limits)
	s.config.Metrics.AddBudgets(budgets.Pools()...)
	options := fusefs.Options{Logger: s.config.Logger, Observer: s.config.Metrics.ObserveMount, Budgets: budgets}
	m.mounted, m.guard, m.err = mount(s.mountDir, client, options, s.inherited)
	return m
}

// startRetry is the pause after the server could not be started while its mount goes on through others.
const startRetry = 5 * time.Second

// raised is a node that is ready.
type raised struct {
	node  *cluster.Node // nil: there is none
	parts parts
	err   error // why there is none and never will be
}

// raise starts the node again and again.
func (s *service) raise(ctx context.Context, functions http.Handler) raised {
	for {
		var r raised
		var err error
		if r.node, err = s.startNode(ctx, functions, &r.parts); err == nil {
			return r
		}
		r.parts.stop(s.config.Logger)
		if cluster.IsRemoved(err) {
			return raised{err: err}
		}
		if ctx.Err() == nil {
			s.config.Logger.Error("this server does not start, and its mount goes on through others; trying again", "error", err)
			supervisor.Status("does not start: " + err.Error())
		}
		if pause.For(ctx, startRetry) != nil {
			return raised{err: ctx.Err()}
		}
	}
}

// standIn starts the node while the mount goes on through other servers, and has it turn to the node once both are there. A node that is not
// ready, or cannot be started, is no reason to end what programs use: another program can go on with the mount meanwhile, too.
func (s *service) standIn(ctx context.Context, taken *takenOver, asked <-chan os.Signal, functions http.Handler) (*upgrade, error) {
	ready := make(chan raised, 1)
	starting, end := context.WithCancel(ctx)
	go func() { ready <- s.raise(starting, functions) }()
	leave := func(m serverMount) error {
		s.parts.started("server", func() error {
			end()
			(<-ready).parts.stop(s.config.Logger)
			return nil
		})
		return s.keep(ctx, m)
	}
	var client *session.Client
	var m *serverMount
	var hangup <-chan os.Signal // nil until there is a mount
	for {
		var failure error
		select {
		case client = <-taken.begun:
			continue
		case got := <-taken.mounted:
			if m = &got; got.err == nil {
				hangup = asked
				s.watch(ctx, supervisor.Loop{Name: "session", Due: got.client.WatchdogDeadline})
				continue
			}
		case <-hangup:
			if s.next(*m).attempt(ctx) {
				return nil, errNoProgram
			}
			continue
		case r := <-ready:
			if r.err == nil {
				return s.join(ctx, r, taken, client, m)
			}
			failure = r.err
			ready <- r
		case <-ctx.Done():
			failure = ctx.Err()
		}
		if m == nil {
			m = new(<-taken.mounted)
		}
		return nil, errors.Join(failure, leave(*m))
	}
}

// join has the mount go on through the node, though nobody else may have answered it yet.
func (s *service) join(ctx context.Context, r raised, taken *takenOver, client *session.Client, m *serverMount) (*upgrade, error) {
	s.node.Store(r.node)
	s.parts = r.parts
	if client == nil {
		select {
		case client = <-taken.begun:
		case got := <-taken.mounted:
			m = &got // there is none
		}
	}
	if client != nil {
		r.node.Adopt(client)
	}
	isNew := m == nil
	if isNew {
		m = new(<-taken.mounted)
	}
	if err := s.keep(ctx, *m); err != nil {
		return nil, err
	}
	if isNew {
		s.watch(ctx, supervisor.Loop{Name: "session", Due: m.client.WatchdogDeadline})
	}
	return s.show(r.node, *m, r.parts), nil
}

// keep has a mount stopped with all else. The error is that there is none.
func (s *service) keep(ctx context.Context, m serverMount) error {
	switch {
	case m.client == nil, m.err != nil && ctx.Err() == nil && s.inherited.isGuarded():
		s.config.Logger.Error("this process does not go on with the mount, and leaves it to the next", "error", m.err)
		return m.err
	case m.err != nil:
		s.parts.started("session", func() error { return endSession(m.client, nil) })
		return m.err
	}
	s.parts.started("connection", func() error { return m.mounted.End(m.client.Answers()) })
	s.parts.started("session", func() error { return endSession(m.client, m.mounted) })
	s.parts.started("mount", func() error {
		m.guard.farewell()
		return m.mounted.Unmount()
	})
	return nil
}
