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

// stopped ends a daemon by SIGTERM. One that has not ended when it is to run again is killed.
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

// hostFrozen stops all processes of a host, those that have locks too.
func hostFrozen(_ *Site, g *target, _ Strike) func() {
	g.host.Freeze()
	return g.host.Thaw
}

// upgraded has the program at its path go on with the mount.
func upgraded(_ *Site, g *target, _ Strike) func() {
	daemon := g.daemon()
	daemon.Signal(syscall.SIGHUP)
	return func() {}
}

// toNextVersion has the program of the next version there, from which nobody goes back: the cluster is of that version as soon as all are.
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

// shortOfMemory has a server run with so little that it collects garbage without end.
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

// handsOver tells whether the daemon is about to be succeeded by another program, or to put that off.
func (g *target) handsOver(since time.Duration, k kind) bool {
	return g.held&process != 0 && strings.Contains(k.name, "upgraded") && since < 2*time.Second
}
