package cluster

import (
	"context"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/ids"
)

// endedWaitsWait is how long the leader keeps a request for ended waits. It is below rpc.AttemptTimeout.
const endedWaitsWait = time.Second

// EndedWaits is part of rpc.Node.
func (n *Node) EndedWaits(ctx context.Context, req *clusterpb.EndedWaitsRequest) (*clusterpb.EndedWaitsReply, error) {
	session := ids.Session(req.GetSession())
	if _, err := n.identityCheck.checkSession(rpc.CallerOf(ctx), session); err != nil {
		return nil, err
	}
	term, leader := n.leadership.await(ctx)
	if term == 0 {
		return &clusterpb.EndedWaitsReply{Outcome: clusterpb.Outcome_NOT_LEADER, LeaderAddress: leader}, nil
	}
	waiting, cancel := context.WithTimeout(ctx, endedWaitsWait)
	defer cancel()
	waits, err := n.fsm.EndedWaits(waiting, session, ids.Index(req.GetAfter()))
	if err == nil && !n.stillLeads(term) {
		err = errNoQuorum // see leaseGate.query
	}
	if err == nil && len(waits.Granted) > 0 {
		err = n.leaseGate.waitAllRevoked(n.ctx)
	}
	if err != nil {
		return &clusterpb.EndedWaitsReply{Outcome: outcomeOf(notAnswered(err))}, nil
	}
	return &clusterpb.EndedWaitsReply{
		Index: uint64(waits.Index), Whole: waits.Whole, Waiting: waits.Waiting, Granted: numbersOf(waits.Granted), Ended: numbersOf(waits.Ended),
	}, nil
}

func numbersOf(seqs []ids.Sequence) (numbers []uint64) {
	for _, seq := range seqs {
		numbers = append(numbers, uint64(seq))
	}
	return numbers
}
