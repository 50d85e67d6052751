package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/consensus"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// dialer verifies which node is at an address.
type dialer struct {
	self     string // id of this node
	raft     *consensus.Raft
	security *rpc.Security
}

// dialBack verifies that a node and its raft answer at its address, under its id.
func (d *dialer) dialBack(ctx context.Context, member *storepb.Member) error {
	if member.GetId() == d.self {
		return errors.New("this node is the leader itself")
	}
	ctx, cancel := context.WithTimeout(ctx, dialBackTimeout)
	defer cancel()
	answered := make(chan error, 1)
	go func() {
		answered <- d.raft.Identify(raft.ServerID(member.GetId()), raft.ServerAddress(member.GetAddress()))
	}()
	select {
	case err := <-answered:
		if err != nil {
			return err
		}
	case <-ctx.Done():
		return fmt.Errorf("its address %s does not answer", member.GetAddress())
	}
	_, err := d.identify(ctx, member)
	return err
}

// identify returns the applied index of a node. It dials a new connection, because the node may never join.
func (d *dialer) identify(ctx context.Context, member *storepb.Member) (applied ids.Index, err error) {
	if member == nil {
		return 0, errors.New("its address is not known")
	}
	address := member.GetAddress()
	peer := rpc.NewClient(address, d.security)
	defer peer.Close()
	ctx, cancel := context.WithTimeout(ctx, dialBackTimeout)
	defer cancel()
	status, err := peer.Status(ctx, &clusterpb.StatusRequest{})
	if err != nil {
		return 0, fmt.Errorf("its address %s does not answer: %w", address, err)
	}
	if status.GetId() != member.GetId() {
		return 0, fmt.Errorf("at its address %s answers %q", address, status.GetId())
	}
	if status.GetFull() {
		return 0, errors.New("its disk is full")
	}
	return ids.Index(status.GetAppliedIndex()), nil
}
