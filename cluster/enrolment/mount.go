package enrolment

import (
	"context"
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

	mu    sync.Mutex
	ahead time.Duration // cluster time less CLOCK_BOOTTIME
	known bool          // it was heard

	rootIsNobody atomic.Bool
	heard        chan struct{} // closed once that is known
}

// ForMount makes the keeper of a host that mounts.
func ForMount(credentials *identity.Credentials, logger *slog.Logger) *MountKeeper {
	m := &MountKeeper{logger: logger, heard: make(chan struct{})}
	m.Keeper = newKeeper(credentials, credentials.Judge(m.now), credentials.Servers, logger)
	return m
}

// Heard takes up what the answer to a keepalive tells.
func (m *MountKeeper) Heard(reply *clusterpb.KeepAliveReply) {
	m.rootIsNobody.Store(reply.GetSquashRoot())
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

// RootIsNobody tells whether root of this host may no more than nobody. A mount that has just begun may have to wait until it hears that:
// until ctx ends, and so long at most.
func (m *MountKeeper) RootIsNobody(ctx context.Context, atMost time.Duration) (bool, error) {
	select {
	case <-m.heard:
		return m.rootIsNobody.Load(), nil
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	select {
	case <-m.heard:
		return m.rootIsNobody.Load(), nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// now is cluster time as it was last heard, the beginning of time if it was not.
func (m *MountKeeper) now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.known {
		return time.Time{}
	}
	return time.Unix(0, int64(hostinfo.BootTime()+m.ahead))
}
