package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/storepb"
)

// callBack asks at both addresses of a node whether it is there. What its raft says is of no matter, only who says it.
func (n *Node) callBack(ctx context.Context, member *storepb.Member) error {
	if member.GetId() == n.id.ID {
		return errors.New("this node is the leader itself")
	}
	ctx, cancel := context.WithTimeout(ctx, callBackTimeout)
	defer cancel()
	answered := make(chan error, 1)
	go func() { answered <- n.callRaft(member) }()
	select {
	case err := <-answered:
		if err != nil {
			return err
		}
	case <-ctx.Done():
		return fmt.Errorf("its raft address %s does not answer", member.GetRaftAddress())
	}
	_, err := n.askNewcomer(ctx, member)
	return err
}

// callRaft is a question for a vote in a term that is over, which changes nothing.
func (n *Node) callRaft(member *storepb.Member) error {
	caller, ok := n.transport.(raft.WithPreVote)
	if !ok {
		return errors.New("this node cannot call others")
	}
	id, address := raft.ServerID(member.GetId()), raft.ServerAddress(member.GetRaftAddress())
	self := raft.ServerID(n.id.ID)
	request := &raft.RequestPreVoteRequest{RPCHeader: raft.RPCHeader{
		ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(self), Addr: n.transport.EncodePeer(self, n.transport.LocalAddr()),
	}}
	reply := new(raft.RequestPreVoteResponse)
	if err := caller.RequestPreVote(id, address, request, reply); err != nil {
		return fmt.Errorf("its raft address %s does not answer: %w", address, err)
	}
	if string(reply.ID) != member.GetId() {
		return fmt.Errorf("at its raft address %s answers %q", address, reply.ID)
	}
	return nil
}

// askNewcomer answers what a node has applied. It uses a connection of its own: nobody has to keep one to a node that never joins.
func (n *Node) askNewcomer(ctx context.Context, member *storepb.Member) (applied uint64, err error) {
	if member == nil {
		return 0, errors.New("its addresses are not known")
	}
	address := member.GetApiAddress()
	peer := rpc.NewRemote(address)
	defer peer.Close()
	ctx, cancel := context.WithTimeout(ctx, callBackTimeout)
	defer cancel()
	status, err := peer.Status(ctx, &clusterpb.StatusRequest{})
	if err != nil {
		return 0, fmt.Errorf("its API address %s does not answer: %w", address, err)
	}
	if status.GetId() != member.GetId() {
		return 0, fmt.Errorf("at its API address %s answers %q", address, status.GetId())
	}
	return status.GetAppliedIndex(), nil
}
