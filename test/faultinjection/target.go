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

// A target is a host with a daemon: a server, or a guest.
type target struct {
	name  string
	host  *hosts.Host
	node  *testcluster.Node  // nil of a guest
	guest *testcluster.Guest // nil of a server
	voter bool               // it is meant to have a vote

	clock   string // file that says by how much its clock is ahead
	ahead   time.Duration
	disk    *dataDisk // of a server
	metrics *metrics

	held     part // by strikes that are under way
	away     bool // it is not meant to run now
	excused  time.Time
	launched time.Time
	told     time.Time // to go to the next version

	installs  int       // how often the daemon has said that it has a snapshot of the leader's
	installed time.Time // when it last did, about
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

// noteInstalled notes whether a server has got a snapshot of the leader's since it was called before.
func (g *target) noteInstalled() {
	if g.daemon() == nil {
		return
	}
	installs := strings.Count(g.daemon().Log(), "Installed remote snapshot")
	if installs > g.installs {
		g.installed = time.Now()
	}
	g.installs = installs // another process begins anew
}

// toldLasts is how long it may take a daemon that was told so to go on as the next version.
const toldLasts = 10 * time.Second

// isOld tells whether a mount asks for the next version, which the cluster went to while it was away. Who has just been told to go there
// may still be about to.
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

// setClock makes the clock wrong by so much more than it is for good.
func (g *target) setClock(t testing.TB, wrong time.Duration) {
	t.Helper()
	fresh := filepath.Join(filepath.Dir(g.clock), "."+filepath.Base(g.clock))
	require.NoError(t, os.WriteFile(fresh, []byte((g.ahead+wrong).String()), 0o644))
	require.NoError(t, os.Rename(fresh, g.clock))
}
