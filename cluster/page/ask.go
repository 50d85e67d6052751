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

// askTimeout is how long the cluster may take to answer: beyond it, who looks is told that it does not.
const askTimeout = 5 * time.Second

// asker asks the cluster for the caller of a context.
type asker struct{ front rpc.Node }

var errNoAnswer = errors.New("the cluster does not answer: no server is reached, or none of them leads")

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

// status asks one member, by its id; empty: whichever is nearest.
func (a asker) status(ctx context.Context, member string, recent bool) (*clusterpb.StatusReply, error) {
	ctx, cancel := context.WithTimeout(ctx, memberTimeout)
	defer cancel()
	return a.front.Status(ctx, &clusterpb.StatusRequest{Member: member, Recent: recent})
}

// memberTimeout is shorter than askTimeout: a page shows that one member is silent, and goes on.
const memberTimeout = 2 * time.Second

func settled(outcome clusterpb.Outcome, result *storepb.Result, err error) (*storepb.Result, error) {
	switch {
	case err != nil:
		return nil, err
	case outcome == clusterpb.Outcome_UNKNOWN:
		return nil, fmt.Errorf("it may have been done, and may be yet: %w", errNoAnswer)
	case outcome != clusterpb.Outcome_DONE:
		return nil, errNoAnswer
	case result.GetCode() != storepb.Code_OK:
		return nil, &rpc.RefusedError{Result: result}
	}
	return result, nil
}

// viewer is the caller of a context as queries have him; the front puts in its own place of it whatever it knows better.
func viewer(ctx context.Context) *storepb.Viewer {
	caller := rpc.CallerOf(ctx)
	return &storepb.Viewer{Uid: caller.UID, Gid: caller.GID, Groups: caller.Groups, MoreGroups: caller.Groups == nil}
}

// eventPage is how many events are asked for at once, which is less than what an answer may hold.
const eventPage = 500
