package faultinjection

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// A target is a host with a daemon: a server or a guest.
type target struct {
	name  string
	host  *hosts.Host
	node  *testcluster.Node  // nil for a guest
	guest *testcluster.Guest // nil for a server
	voter bool               // intended to vote

	clock   string // file with its clock offset
	ahead   time.Duration
	disk    *dataDisk // of a server
	metrics *metrics

	held     part // by running strikes
	away     bool // it should not run now
	excused  time.Time
	launched time.Time
	told     time.Time // time of the request for the next version

	installs  int       // number of the leader's snapshots installed
	installed time.Time // approximate time of the last one
}

func (g *target) daemon() *hosts.Process {
	if g.node != nil {
		return g.node.Server
	}
	return g.guest.Daemon
}

func (g *target) kill() {
	if g.node != nil {
		g.node.Kill()
	} else {
		g.guest.Kill()
	}
}

// launch starts the daemon and does not wait for it.
func (g *target) launch(t testing.TB) {
	t.Helper()
	g.away, g.launched = false, time.Now()
	if g.node != nil {
		g.node.Launch()
	} else {
		g.guest.Launch(t)
	}
}

func (g *target) readyLine() string {
	if g.node != nil {
		return "lockfs: " + g.name + " ready\n"
	}
	return "lockfs: ready at "
}

func (g *target) ready() bool {
	return g.daemon() != nil && strings.Contains(g.daemon().Log(), g.readyLine())
}

// noteInstalled checks whether a server has installed a snapshot of the leader since the last call.
func (g *target) noteInstalled() {
	if g.daemon() == nil {
		return
	}
	installs := strings.Count(g.daemon().Log(), "Installed remote snapshot")
	if installs > g.installs {
		g.installed = time.Now()
	}
	g.installs = installs // a new process counts anew
}

// toldLasts limits the upgrade to the next version after the request.
const toldLasts = 10 * time.Second

// isOld reports whether a mount asks for the next version, because the cluster went there while it was away.
// A mount with a recent request may still be upgrading.
func (g *target) isOld() bool {
	log := g.daemon().Log()
	refused := strings.LastIndex(log, "the cluster runs at version 2, and ")
	return refused >= 0 && refused > strings.LastIndex(log, "went on with the mount") && time.Since(g.told) > toldLasts
}

func (g *target) ended() bool {
	return g.daemon() == nil || hasEnded(g.daemon())
}

func hasEnded(p *hosts.Process) bool {
	select {
	case <-p.Ended():
		return true
	default:
		return false
	}
}

// setClock sets the clock wrong by this much more than permanently.
func (g *target) setClock(t testing.TB, wrong time.Duration) {
	t.Helper()
	fresh := filepath.Join(filepath.Dir(g.clock), "."+filepath.Base(g.clock))
	require.NoError(t, os.WriteFile(fresh, []byte((g.ahead+wrong).String()), 0o644))
	require.NoError(t, os.Rename(fresh, g.clock))
}
