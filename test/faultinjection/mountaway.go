package faultinjection

import (
	"strings"
	"syscall"
)

// mountAway unmounts a guest's mount lazily by hand, and stops or kills its daemon before or after. Open
// files keep working. Other opens by path reach the bare directory, where creation fails.
func mountAway(s *Site, g *target, strike Strike) func() {
	g.away = true
	daemon := g.daemon()
	switch {
	case strike.Amount < 0.3: // it continues for open files
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
