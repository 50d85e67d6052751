package faultinjection

import (
	"strings"
	"testing"
	"time"
)

// noCluster is in the error of a server with an empty data directory.
const noCluster = "belongs to no cluster"

// diskLost kills a follower and starts it with an empty data directory, an empty /run/lockfs and its old
// command line. The server must neither join by itself nor create a cluster. The operator then replaces or
// removes it, and it joins with a new token.
func diskLost(s *Site, g *target, strike Strike) func() {
	if g == s.servers[0] { // checks run on its host
		return nil
	}
	g.kill()
	g.wipe(s.t)
	g.host.MustRun(s.t, "sh", "-c", "rm -rf /run/lockfs/*")
	g.launch(s.t)
	g.away = true // it must not start again
	server := g.daemon()
	return func() {
		select {
		case <-server.Ended():
		case <-time.After(errandTime):
		}
		if g.ready() {
			s.t.Errorf("%s lost its disk, and is a server again without an operator", g.name)
		}
		// The command line of a server that has joined again has a spent token.
		if joins := strings.Contains(strings.Join(g.node.Flags, " "), "--token"); !joins && (!g.ended() || !strings.Contains(server.Log(), noCluster)) {
			s.t.Errorf("%s lost its disk, and did not refuse to start for that:\n%s", g.name, server.Log())
		}
		s.replaceOrRemove(g, strike)
	}
}

// replaceOrRemove begins one of the operator's two ways to let a server with useless data join again.
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
