package faultinjection

import (
	"strings"
	"syscall"
)

// mountAway has a guest's mount removed by hand, lazily, and its daemon stopped or killed before or after that. What programs have open stays as
// it is. All else that they open by path is in the bare directory, where nothing can be made.
func mountAway(s *Site, g *target, strike Strike) func() {
	g.away = true
	daemon := g.daemon()
	switch {
	case strike.Amount < 0.3: // it goes on for what is open
	case strike.Amount < 0.6:
		defer daemon.Signal(syscall.SIGTERM)
	default:
		daemon.Kill()
	}
	dir := s.Cluster.Mount
	if said, err := g.host.Run("umount", "--lazy", "--no-canonicalize", dir); err != nil {
		s.t.Errorf("%s: %s %v", g.name, said, err)
	}
	if said, err := g.host.Run("sh", "-c", `set -C; : > "$1"/bare.lock`, "sh", dir); err == nil || !strings.Contains(err.Error(), "Read-only file system") {
		s.t.Errorf("a lock in the bare directory of %s: %s %v", g.name, said, err)
	}
	return func() {
		daemon.Kill()
		g.launch(s.t)
	}
}
