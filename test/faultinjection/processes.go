package faultinjection

import (
	"strings"
	"syscall"
	"time"
)

func killed(s *Site, g *target, _ Strike) func() {
	g.away = true
	g.kill()
	return func() { g.launch(s.t) }
}

// stopped ends a daemon by SIGTERM. It kills one that still runs at the end of the strike.
func stopped(s *Site, g *target, _ Strike) func() {
	g.away = true
	g.daemon().Signal(syscall.SIGTERM)
	return func() {
		g.kill()
		g.launch(s.t)
	}
}

func frozen(_ *Site, g *target, _ Strike) func() {
	daemon := g.daemon()
	daemon.Freeze()
	return daemon.Thaw
}

// hostFrozen stops all processes of a host, also those with locks.
func hostFrozen(_ *Site, g *target, _ Strike) func() {
	g.host.Freeze()
	return g.host.Thaw
}

// upgraded hands the mount over to the program at its path.
func upgraded(_ *Site, g *target, _ Strike) func() {
	daemon := g.daemon()
	daemon.Signal(syscall.SIGHUP)
	return func() {}
}

// toNextVersion installs the next version. There is no way back: the cluster is at that version as soon as
// all are.
func toNextVersion(s *Site, g *target, _ Strike) func() {
	s.install(g.name, s.Next)
	g.daemon().Signal(syscall.SIGHUP)
	return func() {}
}

func upgradedAndKilled(s *Site, g *target, _ Strike) func() {
	g.daemon().Signal(syscall.SIGHUP)
	return func() {
		g.kill()
		g.launch(s.t)
	}
}

// shortOfMemory runs a server with so little memory that it collects garbage constantly.
func shortOfMemory(s *Site, g *target, _ Strike) func() {
	g.kill()
	usual := g.node.Environment
	g.node.Environment = append([]string{"GOMEMLIMIT=12MiB"}, usual...)
	g.launch(s.t)
	return func() {
		g.node.Environment = usual
		g.kill()
		g.launch(s.t)
	}
}

// handsOver reports whether the daemon is about to hand over, or to postpone it.
func (g *target) handsOver(since time.Duration, k kind) bool {
	return g.held&process != 0 && strings.Contains(k.name, "upgraded") && since < 2*time.Second
}
