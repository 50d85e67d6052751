package cluster

import (
	"errors"

	"lockfs/cluster/clusterpb"
	"lockfs/raftstore"
)

// outcomeOf returns the outcome for the caller.
func outcomeOf(err error) clusterpb.Outcome {
	switch {
	case err == nil:
		return clusterpb.Outcome_DONE
	case errors.Is(err, raftstore.ErrNotLeader):
		return clusterpb.Outcome_NOT_LEADER
	case errors.Is(err, raftstore.ErrNotDone):
		return clusterpb.Outcome_NOT_DONE
	default:
		return clusterpb.Outcome_UNKNOWN
	}
}

// notAnswered marks an error, if any, as one of a query without an answer.
func notAnswered(err error) error {
	if err != nil {
		err = errors.Join(raftstore.ErrNotDone, err)
	}
	return err
}
