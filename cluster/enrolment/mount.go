package enrolment

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/identity"
	"lockfs/raftstore/hostinfo"
)

// MountKeeper is the Keeper of a host without the cluster's state: what it knows of the cluster it hears with keepalives.
type MountKeeper struct {
	*Keeper
	logger *slog.Logger

	mu      sync.Mutex
	ahead   time.Duration // cluster time less CLOCK_BOOTTIME
	known   bool          // it was heard
	notKept string        // why the roster is not on disk, as it was logged

	heardAt atomic.Int64 // when a keepalive was answered last, on CLOCK_BOOTTIME; 0: none was

	rootIsNobody atomic.Bool
	heard        chan struct{} // closed once something was
}

// ForMount makes the keeper of a host that mounts.
func ForMount(credentials *identity.Credentials, logger *slog.Logger) *MountKeeper {
	m := &MountKeeper{logger: logger, heard: make(chan struct{})}
	m.Keeper = newKeeper(credentials, credentials.Judge(m.now), credentials.Servers, logger)
	m.vet = vetterOf(credentials, m.judge, m.isFresh).of
	return m
}

// freshFor is for how long after a keepalive was answered the members are those that it told. A mount that was suspended, or cut off, has
// servers prove their membership anew.
const freshFor = time.Minute

func (m *MountKeeper) isFresh() bool {
	at := m.heardAt.Load()
	return at != 0 && hostinfo.BootTime()-time.Duration(at) < freshFor
}

// Judge decides about the certificates of other hosts.
func (m *MountKeeper) Judge() identity.Judge { return m.judge }

// RosterVersion is told with keepalives, so that the leader sends the roster if there is another one.
func (m *MountKeeper) RosterVersion() uint64 { return m.credentials.RosterVersion() }

// Heard takes up what the answer to a keepalive tells.
func (m *MountKeeper) Heard(reply *clusterpb.KeepAliveReply) {
	m.rootIsNobody.Store(reply.GetSquashRoot())
	m.takeRoster(reply.GetRoster())
	m.heardAt.Store(int64(hostinfo.BootTime()))
	m.mu.Lock()
	if m.ahead = time.Duration(reply.GetClusterTime()) - hostinfo.BootTime(); !m.known {
		m.known = true
		close(m.heard)
	}
	m.mu.Unlock()
	m.Signs(reply.GetAuthority())
	if len(reply.GetServers()) == 0 {
		return
	}
	if err := m.credentials.SetServers(reply.GetServers()); err != nil {
		m.logger.Warn("the addresses of the servers are not kept", "error", err)
	}
}

// takeRoster takes up a roster; nil: it has not changed.
func (m *MountKeeper) takeRoster(said *clusterpb.Roster) {
	roster, authorities, err := rosterOf(said)
	if err == nil && roster != nil {
		err = m.credentials.SetRoster(roster, authorities)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		m.notKept = ""
	} else if m.notKept != err.Error() {
		m.notKept = err.Error()
		m.logger.Warn("the roster of the cluster is not kept", "error", err)
	}
}

// Known is closed once something was heard, also what RootIsNobody tells.
func (m *MountKeeper) Known() <-chan struct{} { return m.heard }

// RootIsNobody tells whether root of this host may no more than nobody, as it was last heard.
func (m *MountKeeper) RootIsNobody() bool { return m.rootIsNobody.Load() }

// now is cluster time as it was last heard, the beginning of time if it was not.
func (m *MountKeeper) now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.known {
		return time.Time{}
	}
	return time.Unix(0, int64(hostinfo.BootTime()+m.ahead))
}
