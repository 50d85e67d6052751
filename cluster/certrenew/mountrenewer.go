package certrenew

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/identity"
	"lockfs/raftstore/hostinfo"
)

// MountRenewer is the Renewer of a host without the cluster's state. Keepalives bring its knowledge of
// the cluster.
type MountRenewer struct {
	*Renewer
	logger *slog.Logger

	mu      sync.Mutex
	ahead   time.Duration // cluster time less CLOCK_BOOTTIME
	known   bool          // a keepalive was answered
	notKept string        // last logged reason why the roster is not on disk

	updatedAt atomic.Int64 // time of the last answered keepalive on CLOCK_BOOTTIME; 0: none

	rootSquashed atomic.Bool
	updated      chan struct{} // closed at the first one
}

// ForMount returns the renewer of a mounting host.
func ForMount(credentials *identity.Credentials, logger *slog.Logger) *MountRenewer {
	m := &MountRenewer{logger: logger, updated: make(chan struct{})}
	m.Renewer = newRenewer(credentials, credentials.Verifier(m.now), credentials.Servers, logger)
	m.vet = newProofChecker(credentials, m.judge, m.isFresh).of
	return m
}

// freshFor is how long the members of a keepalive's roster count. Later, for instance after a suspend,
// servers have to prove their membership.
const freshFor = time.Minute

func (m *MountRenewer) isFresh() bool {
	at := m.updatedAt.Load()
	return at != 0 && hostinfo.BootTime()-time.Duration(at) < freshFor
}

// Judge returns the verifier of other hosts' certificates.
func (m *MountRenewer) Judge() identity.Verifier { return m.judge }

// RosterVersion goes along with keepalives, so that the leader sends newer rosters.
func (m *MountRenewer) RosterVersion() uint64 { return m.credentials.RosterVersion() }

// Update takes the reply to a keepalive.
func (m *MountRenewer) Update(reply *clusterpb.KeepAliveReply) {
	m.rootSquashed.Store(reply.GetSquashRoot())
	m.setRoster(reply.GetRoster())
	m.updatedAt.Store(int64(hostinfo.BootTime()))
	m.mu.Lock()
	if m.ahead = time.Duration(reply.GetClusterTime()) - hostinfo.BootTime(); !m.known {
		m.known = true
		close(m.updated)
	}
	m.mu.Unlock()
	m.SetSigner(reply.GetAuthority())
	if len(reply.GetServers()) == 0 {
		return
	}
	if err := m.credentials.SetServers(reply.GetServers()); err != nil {
		m.logger.Warn("the addresses of the servers are not kept", "error", err)
	}
}

// setRoster stores a roster; nil: unchanged.
func (m *MountRenewer) setRoster(said *clusterpb.Roster) {
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

// Known is closed once a keepalive was answered, and RootSquashed is valid.
func (m *MountRenewer) Known() <-chan struct{} { return m.updated }

// RootSquashed reports whether root of this host is squashed, by the last keepalive.
func (m *MountRenewer) RootSquashed() bool { return m.rootSquashed.Load() }

// now returns cluster time by the last keepalive, or the zero time.
func (m *MountRenewer) now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.known {
		return time.Time{}
	}
	return time.Unix(0, int64(hostinfo.BootTime()+m.ahead))
}
