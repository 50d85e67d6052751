package cluster

import (
	"errors"

	"lockfs/cluster/clusterpb"
	"lockfs/raftstore"
)

// outcomeOf tells who asked what became of it.
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

// notAnswered says of an error, if there is one, that a query was not answered.
func notAnswered(err error) error {
	if err != nil {
		err = errors.Join(raftstore.ErrNotDone, err)
	}
	return err
}
