package page

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/storepb"
)

// askTimeout is the time limit for replies of the cluster; the page then shows the failure.
const askTimeout = 5 * time.Second

// asker sends queries for the caller of a context.
type asker struct{ front rpc.Node }

var errNoAnswer = errors.New("no server can be reached, or the servers have no leader")

func (a asker) query(ctx context.Context, query *storepb.Query) (*storepb.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	reply, err := a.front.Execute(ctx, &clusterpb.ExecuteRequest{Request: &clusterpb.ExecuteRequest_Query{Query: query}})
	return settled(reply.GetOutcome(), reply.GetResult(), err)
}

func (a asker) change(ctx context.Context, op *storepb.Op) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	reply, err := a.front.Change(ctx, &clusterpb.ChangeRequest{Op: op, Caller: &storepb.Caller{Pid: uint32(os.Getpid())}})
	_, err = settled(reply.GetOutcome(), reply.GetResult(), err)
	return err
}

func (a asker) sessions(ctx context.Context) ([]*clusterpb.Session, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	reply, err := a.front.Sessions(ctx, new(clusterpb.SessionsRequest))
	_, err = settled(reply.GetOutcome(), nil, err)
	return reply.GetSessions(), err
}

// status asks one member by its id; empty: the nearest one.
func (a asker) status(ctx context.Context, member string, recent bool) (*clusterpb.StatusReply, error) {
	ctx, cancel := context.WithTimeout(ctx, memberTimeout)
	defer cancel()
	return a.front.Status(ctx, &clusterpb.StatusRequest{Member: member, Recent: recent})
}

// memberTimeout is shorter than askTimeout: a page shows the other members and marks this one as unreachable.
const memberTimeout = 2 * time.Second

func settled(outcome clusterpb.Outcome, result *storepb.Result, err error) (*storepb.Result, error) {
	switch {
	case err != nil:
		return nil, err
	case outcome == clusterpb.Outcome_UNKNOWN:
		return nil, fmt.Errorf("the change may take effect, now or later: %w", errNoAnswer)
	case outcome != clusterpb.Outcome_DONE:
		return nil, errNoAnswer
	case result.GetCode() != storepb.Code_OK:
		return nil, &rpc.RefusedError{Result: result}
	}
	return result, nil
}

// viewer returns the caller of a context as a viewer for queries. The front replaces it with verified data.
func viewer(ctx context.Context) *storepb.Viewer {
	caller := rpc.CallerOf(ctx)
	return &storepb.Viewer{Uid: caller.UID, Gid: caller.GID, Groups: caller.Groups, MoreGroups: caller.Groups == nil}
}

// eventPage is the number of events in one query, less than the limit of an answer.
const eventPage = 500
