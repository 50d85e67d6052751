package cluster

import (
	"context"
	"fmt"
	"io"
	"time"

	"lockfs/cluster/backup"
	"lockfs/cluster/consensus"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
)

// backupSource makes backups of a node's state.
type backupSource struct {
	router  *rpc.Router // of the node
	raft    *consensus.Raft
	name    string // of the node
	program string // its version
}

// backupConfirm limits the wait for a quorum.
const backupConfirm = 15 * time.Second

// begin takes a snapshot with everything acknowledged before the call, and returns the function that
// writes it.
func (s *backupSource) begin(ctx context.Context) (func(io.Writer) error, error) {
	ctx, cancel := context.WithTimeout(ctx, backupConfirm)
	defer cancel()
	reply, err := rpc.Ask(ctx, s.router, rpc.Node.Execute, statFs)
	if err != nil {
		return nil, fmt.Errorf("no majority of the servers confirms what is to be in it: %w; `lockfs status` tells which of them run", err)
	}
	var snapshot *namespace.Snapshot
	cluster := ""
	err = s.raft.FSM.WaitFor(ctx, func(ns *namespace.Namespace) bool {
		if ns.Index() < ids.Index(reply.GetResult().GetIndex()) {
			return false
		}
		snapshot, cluster = ns.Snapshot(), ns.Cluster()
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("this node is behind the others: %w; `lockfs status` tells how far", err)
	}
	header := backup.Header{
		Cluster: cluster, Node: s.name, Program: s.program, Made: time.Now().UTC().Truncate(time.Second), Term: s.raft.CurrentTerm(),
	}
	return func(w io.Writer) error { return backup.Write(w, header, snapshot) }, nil
}
