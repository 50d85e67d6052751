package cluster

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"lockfs/cluster/rpc"
	"lockfs/raftstore"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// clones detects two machines that mount under one name. The state machine refuses the second one
// (namespace.OpenSession). It may also be the same machine after a crash, until the earlier session ends.
// If that session is renewed after the refusal, both machines are alive.
type clones struct {
	fsm      *raftstore.FSM
	proposer *proposer
	logger   *slog.Logger

	mu      sync.Mutex
	waiting map[string]waitingHost // by name
}

// waitingHost is a refused mount.
type waitingHost struct {
	bootID string
	from   string
	at     time.Duration // monotonic time
}

// mostWaiting limits the remembered mounts, and waitingTime for how long each is remembered.
const (
	mostWaiting = 1000
	waitingTime = time.Minute
)

func newClones(fsm *raftstore.FSM, proposer *proposer, logger *slog.Logger) *clones {
	return &clones{fsm: fsm, proposer: proposer, logger: logger, waiting: make(map[string]waitingHost)}
}

// refused records a mount refused because its host has a session of another boot.
func (c *clones) refused(open *storepb.OpenSession, by rpc.Caller, now time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) >= mostWaiting {
		clear(c.waiting)
	}
	c.waiting[open.GetHost()] = waitingHost{open.GetBootId(), by.String(), now}
}

// speaks raises the alarm if a session is renewed after another boot of its host was refused.
func (c *clones) speaks(id ids.Session, by rpc.Caller, came time.Duration) {
	c.mu.Lock()
	nobody := len(c.waiting) == 0
	c.mu.Unlock()
	if nobody {
		return
	}
	var host, bootID string
	raised := false
	c.fsm.View(func(ns *namespace.Namespace) {
		host, bootID = ns.SessionHost(id), ns.SessionBoot(id)
		raised = ns.HasAlarm(namespace.AlarmTwoHosts, host)
	})
	c.mu.Lock()
	waits, found := c.waiting[host]
	both := found && waits.bootID != bootID && came > waits.at && came-waits.at < waitingTime
	if both || found && came-waits.at >= waitingTime {
		delete(c.waiting, host)
	}
	c.mu.Unlock()
	if !both || raised {
		return
	}
	text := fmt.Sprintf("two machines mount as host %s: one with a live session (%s, boot %.8s), and one that is refused (%s, boot %.8s). "+
		"Give one of them another --name; if it is a clone of the other, give it a machine id of its own too",
		host, by, bootID, waits.from, waits.bootID)
	c.logger.Error("alarm: "+text, "kind", namespace.AlarmTwoHosts, "host", host)
	go c.proposer.proposeOwn(&storepb.Op{Op: &storepb.Op_RaiseAlarm{RaiseAlarm: &storepb.RaiseAlarm{Alarm: &storepb.Alarm{
		Kind: namespace.AlarmTwoHosts, Node: host, Name: host, Text: text,
	}}}})
}
