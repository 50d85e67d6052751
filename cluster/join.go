package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// joinReport is the interval between two log messages about a wait.
const joinReport = 5 * time.Second

// WaitReady returns once this node belongs to a cluster, knows the leader and has caught up with it. It
// waits until ctx ends or the node fails, and logs the reason of the wait. Afterwards the node makes its
// scheduled backups.
func (n *Node) WaitReady(ctx context.Context) error {
	err := n.unlessFailed(ctx, n.becomeReady)
	if err == nil {
		n.backupSchedule.start()
	}
	return err
}

// unlessFailed runs a function that waits for the cluster, until this node fails. The error is then the
// failure.
func (n *Node) unlessFailed(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(n.failure, cancel)()
	err := do(ctx)
	if err != nil && n.failure.Err() != nil {
		return context.Cause(n.failure)
	}
	return err
}

func (n *Node) becomeReady(ctx context.Context) error {
	if !n.dir.HasJoined() {
		n.logger.Info("joining", "servers", n.cfg.Join)
		if err := n.insist(ctx, "reach the cluster", n.hearOfCluster); err != nil {
			return err
		}
		// After it has joined, this node itself knows the leader, even if those servers are gone.
		if err := n.announce(ctx, rpc.NewRouter(n.peers, append(n.peers.Nodes(n.cfg.Join), n)...)); err != nil {
			return err
		}
		if err := n.dir.SetJoined(); err != nil {
			return fmt.Errorf("note that this node has joined: %w", err)
		}
	}
	if n.cfg.Address != "" {
		finding, found := context.WithCancel(ctx)
		defer found()
		go n.discoverPeers(finding)
	}
	if err := n.catchUp(ctx, n.router); err != nil {
		return err
	}
	if n.cfg.Address == "" || n.isRecorded() {
		return nil
	}
	return n.announce(ctx, n.router)
}

// isRecorded reports whether the member record has this node's current address and versions.
func (n *Node) isRecorded() bool {
	recorded, own := n.members.get(n.dir.ID), n.members.own()
	return recorded != nil && !n.hasMoved() && recorded.GetInstance() == own.GetInstance() &&
		recorded.GetOldestVersion() == own.GetOldestVersion() && recorded.GetNewestVersion() == own.GetNewestVersion()
}

// hearOfCluster asks the servers for the id of the cluster to join. Before, the node accepts no messages
// of others. Once it has asked to join it stays with that cluster, because it may have entries of it.
func (n *Node) hearOfCluster(ctx context.Context) error {
	if n.dir.ClusterID() != "" {
		return nil
	}
	err := errors.New("no server is known")
	for _, server := range n.peers.Nodes(n.cfg.Join) {
		attempt, cancel := context.WithTimeout(ctx, rpc.AttemptTimeout)
		var status *clusterpb.StatusReply
		status, err = server.Status(attempt, &clusterpb.StatusRequest{})
		cancel()
		switch {
		case err == nil && status.GetCluster() != "":
			return n.dir.SetCluster(status.GetCluster())
		case err == nil:
			err = errors.New("it knows of no cluster yet")
		}
	}
	select {
	case <-time.After(readyRetry):
	case <-ctx.Done():
	}
	return err
}

// announce asks the leader to make this node a voter at its address.
func (n *Node) announce(ctx context.Context, via *rpc.Router) error {
	return n.insist(ctx, "join the cluster", func(ctx context.Context) error {
		reason := "" // last reason of a delay
		join := func(to rpc.Node, ctx context.Context, req *clusterpb.JoinRequest) (*clusterpb.AdminReply, error) {
			reply, err := to.Join(ctx, req)
			if message := reply.GetResult().GetMessage(); message != "" {
				reason = message
			}
			return reply, err
		}
		member := n.members.own()
		member.Nonvoter = n.cfg.Nonvoter
		reply, err := rpc.Ask(ctx, via, join, &clusterpb.JoinRequest{Member: member, Cluster: n.dir.ClusterID(), Again: n.dir.HasJoined(), Process: n.instances.own()})
		switch {
		case err == nil && reply.GetResult().GetCode() != storepb.Code_OK:
			return &rpc.RefusedError{Result: reply.GetResult()}
		case err != nil && reason != "":
			return fmt.Errorf("%s: %w", reason, err)
		}
		return err
	})
}

// catchUp waits until this node has applied everything the leader had at the time of the request.
func (n *Node) catchUp(ctx context.Context, via *rpc.Router) error {
	return n.insist(ctx, "catch up with a leader", func(ctx context.Context) error {
		var index ids.Index
		upTo := func(to rpc.Node, ctx context.Context, req *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
			reply, err := to.Execute(ctx, req)
			if err != nil || reply.GetOutcome() != clusterpb.Outcome_DONE {
				return reply, err
			}
			status, err := to.Status(ctx, &clusterpb.StatusRequest{})
			index = ids.Index(status.GetStateIndex())
			return reply, err
		}
		if _, err := rpc.Ask(ctx, via, upTo, statFs); err != nil {
			return err
		}
		var applied ids.Index
		err := n.fsm.WaitFor(ctx, func(ns *namespace.Namespace) bool {
			applied = ns.Index()
			return applied >= index
		})
		if err != nil {
			return fmt.Errorf("it has applied entry %d of %d: %w", applied, index, err)
		}
		return nil
	})
}

// insist retries until success, a refusal, or the end of ctx, and logs the reason of the wait.
func (n *Node) insist(ctx context.Context, what string, try func(context.Context) error) error {
	for {
		attempt, cancel := context.WithTimeout(ctx, joinReport)
		err := try(attempt)
		cancel()
		refused := new(rpc.RefusedError)
		switch {
		case err == nil:
			return nil
		case errors.As(err, &refused), ctx.Err() != nil:
			return fmt.Errorf("%s: %w", what, err)
		}
		n.logger.Warn("still trying to "+what, "error", err)
	}
}
