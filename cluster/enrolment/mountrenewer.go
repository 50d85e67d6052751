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

// MountRenewer is the Keeper of a host without the cluster's state: what it knows of the cluster it hears with keepalives.
type MountRenewer struct {
	*Renewer
	logger *slog.Logger

	mu      sync.Mutex
	ahead   time.Duration // cluster time less CLOCK_BOOTTIME
	known   bool          // it was heard
	notKept string        // why the roster is not on disk, as it was logged

	updatedAt atomic.Int64 // when a keepalive was answered last, on CLOCK_BOOTTIME; 0: none was

	rootSquashed atomic.Bool
	updated      chan struct{} // closed once something was
}

// ForMount makes the keeper of a host that mounts.
func ForMount(credentials *identity.Credentials, logger *slog.Logger) *MountRenewer {
	m := &MountRenewer{logger: logger, updated: make(chan struct{})}
	m.Renewer = newRenewer(credentials, credentials.Verifier(m.now), credentials.Servers, logger)
	m.vet = newProofChecker(credentials, m.judge, m.isFresh).of
	return m
}

// freshFor is for how long after a keepalive was answered the members are those that it told. A mount that was suspended, or cut off, has
// servers prove their membership anew.
const freshFor = time.Minute

func (m *MountRenewer) isFresh() bool {
	at := m.updatedAt.Load()
	return at != 0 && hostinfo.BootTime()-time.Duration(at) < freshFor
}

// Judge decides about the certificates of other hosts.
func (m *MountRenewer) Judge() identity.Verifier { return m.judge }

// RosterVersion is told with keepalives, so that the leader sends the roster if there is another one.
func (m *MountRenewer) RosterVersion() uint64 { return m.credentials.RosterVersion() }

// Update takes up what the answer to a keepalive tells.
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

// setRoster takes up a roster; nil: it has not changed.
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

// Known is closed once something was heard, also what RootIsNobody tells.
func (m *MountRenewer) Known() <-chan struct{} { return m.updated }

// RootSquashed tells whether root of this host may no more than nobody, as it was last heard.
func (m *MountRenewer) RootSquashed() bool { return m.rootSquashed.Load() }

// now is cluster time as it was last heard, the beginning of time if it was not.
func (m *MountRenewer) now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.known {
		return time.Time{}
	}
	return time.Unix(0, int64(hostinfo.BootTime()+m.ahead))
}
