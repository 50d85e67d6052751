package faultinjection

import (
	"strings"
	"testing"
	"time"
)

// noCluster is what a server says that is started on an empty data directory.
const noCluster = "belongs to no cluster"

// diskLost kills a follower and starts it with an empty data directory and an empty /run/lockfs. Its command line is the one that it had. The
// server must not join by itself, nor make a cluster. The operator then replaces or removes it, and it joins with a new token.
func diskLost(s *Site, g *target, strike Strike) func() {
	if g == s.servers[0] { // the judges look from its host
		return nil
	}
	g.kill()
	g.wipe(s.t)
	g.host.MustRun(s.t, "sh", "-c", "rm -rf /run/lockfs/*")
	g.launch(s.t)
	g.away = true // it is not to be started again
	server := g.daemon()
	return func() {
		select {
		case <-server.Ended():
		case <-time.After(errandTime):
		}
		if g.ready() {
			s.t.Errorf("%s lost its disk, and is a server again without an operator", g.name)
		}
		// The command line of a server that has come back before has a token, which is spent.
		if joins := strings.Contains(strings.Join(g.node.Flags, " "), "--token"); !joins && (!g.ended() || !strings.Contains(server.Log(), noCluster)) {
			s.t.Errorf("%s lost its disk, and did not refuse to start for that:\n%s", g.name, server.Log())
		}
		s.replaceOrRemove(g, strike)
	}
}

// replaceOrRemove begins one of the two ways by which an operator lets a server join again whose data is of no use.
func (s *Site) replaceOrRemove(g *target, strike Strike) {
	fresh := s.spare()
	if fresh == g || strike.Pick&1 == 0 {
		fresh = nil
	}
	s.replace(g, fresh)
}

// wipe removes all data of a server.
func (g *target) wipe(t testing.TB) {
	t.Helper()
	g.host.MustRun(t, "sh", "-c", `rm -rf "$1"/* "$1"/.[!.]*`, "sh", g.node.Data)
}
