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

// raise is how a leader raises the version of the cluster, once all members know the next. What they have said when they started is
// recorded; they are asked again, for one may have gone back to the program before just now.
type raise struct {
	ctx        context.Context // ends when the node is closed
	fsm        *raftstore.FSM
	raft       *consensus.Raft
	members    *members
	leadership *leadership
	changes    *changes
	peers      *rpc.Peers
	self       rpc.Node
	logger     *slog.Logger

	told string // why it was not raised, as was logged last
}

// raiseInterval is how often a leader looks whether all know the next version.
const raiseInterval = 2 * time.Second

func (r *raise) run() {
	next := time.NewTicker(raiseInterval)
	defer next.Stop()
	for {
		select {
		case <-next.C:
			if r.leadership.term() != 0 {
				r.look()
			}
		case <-r.ctx.Done():
			return
		}
	}
}

// look raises the version by one if all servers, also those that do not vote, answer that they know the next.
func (r *raise) look() {
	to, wrong := uint32(0), ""
	r.fsm.View(func(ns *namespace.Namespace) {
		to = ns.Version() + 1
		wrong = ns.MayRaise(to)
		for _, alarm := range ns.Alarms() {
			if alarm.GetKind() == namespace.AlarmNoSpace { // each server notes the version on its disk
				wrong = "a disk is full (lockfs alarm list)"
			}
		}
	})
	if !r.members.versions.Has(to) {
		return
	}
	if wrong != "" {
		r.notYet(to, wrong)
		return
	}
	asked := r.raft.Servers()
	if err := r.askAll(asked, to); err != nil {
		r.notYet(to, err.Error())
		return
	}
	ctx, cancel := context.WithTimeout(r.ctx, changeTimeout)
	defer cancel()
	if !r.changes.turn.take(ctx) { // nobody joins from here on
		return
	}
	defer r.changes.turn.pass()
	if !slices.Equal(r.raft.Servers(), asked) {
		return // who has joined meanwhile is to be asked too
	}
	result, err := r.changes.propose(ctx, &storepb.Op{Op: &storepb.Op_SetVersion{SetVersion: &storepb.SetVersion{Version: to}}})
	if err != nil || result.GetCode() != storepb.Code_OK {
		r.logger.Warn("the version of the cluster was not raised", "version", to, "reason", result.GetMessage(), "error", err)
		return
	}
	r.logger.Info("the cluster runs at a new version", "version", to)
}

// notYet says why the cluster is not raised to a version, unless it has said so before.
func (r *raise) notYet(to uint32, why string) {
	if why != r.told {
		r.told = why
		r.logger.Info("the version of the cluster is not raised yet", "version", to, "reason", why)
	}
}

// askAll is nil if all servers answer that they know a version.
func (r *raise) askAll(servers []raft.Server, to uint32) error {
	answers := make([]error, len(servers))
	var asking sync.WaitGroup
	for i, server := range servers {
		asking.Go(func() { answers[i] = r.ask(string(server.ID), to) })
	}
	asking.Wait()
	return cmp.Or(answers...)
}

// ask asks a server whether the program that it runs knows a version.
func (r *raise) ask(id string, to uint32) error {
	node := r.self
	if id != r.members.dir.ID {
		node = r.peers.Node(r.members.address(id))
	}
	ctx, cancel := context.WithTimeout(r.ctx, rpc.AttemptTimeout)
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
