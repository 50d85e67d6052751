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
	"lockfs/cmd/lockfs/internal/daemon/sdnotify"
	"lockfs/formats/pause"
	"lockfs/fusefs"
)

// serverMount is the mount of a server, or the error.
type serverMount struct {
	client  *session.Client // nil without a session
	mounted *fusefs.Mounted
	guard   *guardClient
	err     error
}

// serversFile has the other servers, through which a later process takes over the mount before its own server
// runs.
func (s *service) serversFile() string { return filepath.Join(s.config.DataDir, "mount.servers") }

func (s *service) sessionConfig() session.Config {
	config := session.Config{
		Host: s.hostName, OpTimeout: s.opTimeout, Logger: s.config.Logger, Program: cli.ProgramVersion(),
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
			s.config.Logger.Warn("the next process could not take over the mount", "error", err)
		}
	}
	client, err := node.OpenClient(ctx, config)
	return s.mountWith(client, err)
}

// takenOver is a mount which runs before its server.
type takenOver struct {
	begun   chan *session.Client // delivers the client when it can switch to a node; closed without one
	mounted chan serverMount
}

// takeOver takes over the mount of the earlier program through other servers during the start of this one:
// programs wait for the mount, and a large log or state makes the start slow. It returns nil without other
// servers.
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

// startRetry is the pause between attempts to start the server while its mount runs through others.
const startRetry = 5 * time.Second

// startedVoter is a started node or an error.
type startedVoter struct {
	node  *cluster.Node // nil after an error
	parts parts
	err   error // permanent
}

// raise starts the node, with retries.
func (s *service) raise(ctx context.Context, functions http.Handler) startedVoter {
	for {
		var r startedVoter
		var err error
		if r.node, err = s.startNode(ctx, functions, &r.parts); err == nil {
			return r
		}
		r.parts.stop(s.config.Logger)
		if cluster.IsRemoved(err) {
			return startedVoter{err: err}
		}
		if ctx.Err() == nil {
			s.config.Logger.Error("this server does not start; its mount runs through other servers; retrying", "error", err)
			sdnotify.Status("start failed: " + err.Error())
		}
		if pause.For(ctx, startRetry) != nil {
			return startedVoter{err: ctx.Err()}
		}
	}
}

// relayMount starts the node while the mount runs through other servers, and then switches to it. A node
// which is not ready or cannot start never ends the mount: another program can take it over meanwhile.
func (s *service) relayMount(ctx context.Context, taken *takenOver, asked <-chan os.Signal, functions http.Handler) (*upgrade, error) {
	ready := make(chan startedVoter, 1)
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
	var hangup <-chan os.Signal // nil before the mount
	for {
		var failure error
		select {
		case client = <-taken.begun:
			continue
		case got := <-taken.mounted:
			if m = &got; got.err == nil {
				hangup = asked
				s.watch(ctx, sdnotify.Loop{Name: "session", Due: got.client.WatchdogDeadline})
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

// join switches the mount to the node, perhaps before the cluster has answered.
func (s *service) join(ctx context.Context, r startedVoter, taken *takenOver, client *session.Client, m *serverMount) (*upgrade, error) {
	s.node.Store(r.node)
	s.parts = r.parts
	if client == nil {
		select {
		case client = <-taken.begun:
		case got := <-taken.mounted:
			m = &got // no mount
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
		s.watch(ctx, sdnotify.Loop{Name: "session", Due: m.client.WatchdogDeadline})
	}
	return s.show(r.node, *m, r.parts), nil
}

// keep registers a mount to be stopped with the other parts. It returns the error of a missing one.
func (s *service) keep(ctx context.Context, m serverMount) error {
	switch {
	case m.client == nil, m.err != nil && ctx.Err() == nil && s.inherited.isGuarded():
		s.config.Logger.Error("this process cannot take over the mount, and leaves it to the next", "error", m.err)
		return m.err
	case m.err != nil:
		s.parts.started("session", func() error { return endSession(m.client, nil) })
		return m.err
	}
	s.parts.started("connection", func() error { return m.mounted.End(m.client.Answers()) })
	s.parts.started("session", func() error { return endSession(m.client, m.mounted) })
	s.parts.started("mount", func() error {
		m.guard.announceEnd()
		return m.mounted.Unmount()
	})
	return nil
}
