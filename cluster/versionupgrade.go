package cluster

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/consensus"
	"lockfs/cluster/rpc"
	"lockfs/raftstore"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
	"lockfs/raftstore/version"
)

// versionUpgrader raises the version of the cluster once all members know the next one. The versions are
// recorded at each start. The upgrader asks again, because a server may have gone back to an older
// program just now.
type versionUpgrader struct {
	ctx        context.Context // ends when the node is closed
	fsm        *raftstore.FSM
	raft       *consensus.Raft
	members    *members
	leadership *leadership
	proposer   *proposer
	peers      *rpc.Peers
	self       rpc.Node
	logger     *slog.Logger

	lastReason string // last logged reason of a delay
}

// upgradeInterval is how often a leader tries to raise the version.
const upgradeInterval = 2 * time.Second

func (u *versionUpgrader) run() {
	next := time.NewTicker(upgradeInterval)
	defer next.Stop()
	for {
		select {
		case <-next.C:
			if u.leadership.term() != 0 {
				u.tryUpgrade()
			}
		case <-u.ctx.Done():
			return
		}
	}
}

// tryUpgrade raises the version by one if all servers, voters or not, answer that they know it.
func (u *versionUpgrader) tryUpgrade() {
	to, wrong := uint32(0), ""
	u.fsm.View(func(ns *namespace.Namespace) {
		to = ns.Version() + 1
		wrong = ns.MayRaise(to)
		for _, alarm := range ns.Alarms() {
			if alarm.GetKind() == namespace.AlarmNoSpace { // each server writes the version to its disk
				wrong = "a disk is full (lockfs alarm list)"
			}
		}
	})
	if !u.members.versions.Has(to) {
		return
	}
	if wrong != "" {
		u.logReason(to, wrong)
		return
	}
	asked := u.raft.Servers()
	if err := u.askAll(asked, to); err != nil {
		u.logReason(to, err.Error())
		return
	}
	ctx, cancel := context.WithTimeout(u.ctx, changeTimeout)
	defer cancel()
	if !u.proposer.exclusive.Lock(ctx) { // no server joins from here on
		return
	}
	defer u.proposer.exclusive.Unlock()
	if !slices.Equal(u.raft.Servers(), asked) {
		return // another server has joined
	}
	result, err := u.proposer.propose(ctx, &storepb.Op{Op: &storepb.Op_SetVersion{SetVersion: &storepb.SetVersion{Version: to}}})
	if err != nil || result.GetCode() != storepb.Code_OK {
		u.logger.Warn("the version of the cluster was not raised", "version", to, "reason", result.GetMessage(), "error", err)
		return
	}
	u.logger.Info("the cluster runs at a new version", "version", to)
}

// logReason logs why the version is not raised, once.
func (u *versionUpgrader) logReason(to uint32, why string) {
	if why != u.lastReason {
		u.lastReason = why
		u.logger.Info("the version of the cluster is not raised yet", "version", to, "reason", why)
	}
}

// askAll returns nil if all servers answer that they know a version.
func (u *versionUpgrader) askAll(servers []raft.Server, to uint32) error {
	answers := make([]error, len(servers))
	var asking sync.WaitGroup
	for i, server := range servers {
		asking.Go(func() { answers[i] = u.ask(string(server.ID), to) })
	}
	asking.Wait()
	return cmp.Or(answers...)
}

// ask asks whether the program of a server knows a version.
func (u *versionUpgrader) ask(id string, to uint32) error {
	node := u.self
	if id != u.members.dir.ID {
		node = u.peers.Node(u.members.address(id))
	}
	ctx, cancel := context.WithTimeout(u.ctx, rpc.AttemptTimeout)
	defer cancel()
	status, err := node.Status(ctx, &clusterpb.StatusRequest{})
	if err != nil {
		return fmt.Errorf("the server %s does not answer: %w", id, err)
	}
	known := version.Range{Oldest: status.GetOldestVersion(), Newest: status.GetNewestVersion()}
	if status.GetId() != id || !known.Has(to) {
		return fmt.Errorf("the server %s knows version %s", id, known)
	}
	return nil
}
