package session

import (
	"context"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/formats/pause"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// AwaitRelease reports whether the holder of a lock that is in the way of a request has released it, because a release was in progress. The
// leader asks the mount of the holder. All of that takes 50 ms at most; false if there is no answer.
func (c *Client) AwaitRelease(ctx context.Context, wanted *storepb.TakeLock, inTheWay *storepb.AdvisoryLock) bool {
	ctx, cancel := context.WithTimeout(ctx, rpc.ReleaseWait)
	defer cancel()
	reply, err := rpc.Ask(ctx, c.router, rpc.Node.AwaitRelease, &clusterpb.AwaitReleaseRequest{
		Session: uint64(c.lastSession()), Wanted: wanted,
		Holder: &clusterpb.AdvisoryOwner{
			Session: inTheWay.GetSession(), Ino: inTheWay.GetIno(), Kind: inTheWay.GetKind(), Owner: inTheWay.GetOwner(),
		},
	})
	return err == nil && reply.GetReleased()
}

// AnswerReleases has the leader's questions answered, whether a release is in progress of what an owner has locked of a file in this
// session, until ctx ends. released may be called by several at once. It waits for a release that is in progress, and reports
// whether it came in time. The leader is asked for questions only while the session has locks.
func (c *Client) AnswerReleases(ctx context.Context, released func(ids.Inode, storepb.LockKind, ids.Owner) bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	for ctx.Err() == nil {
		c.answerReleases(ctx, released)
		select {
		case <-c.locked:
		case <-ctx.Done():
		}
	}
}

// answerReleases ends once the session has no locks.
func (c *Client) answerReleases(ctx context.Context, released func(ids.Inode, storepb.LockKind, ids.Owner) bool) {
	for ctx.Err() == nil {
		session := c.lastSession()
		reply, err := c.askReleases(ctx, &clusterpb.ReleaseQuestionsRequest{Session: uint64(session)})
		switch {
		case err != nil:
			_ = pause.For(ctx, reopenPause)
		case reply.GetNoLocks() && session == c.lastSession():
			return
		}
		for _, question := range reply.GetQuestions() {
			holder := question.GetHolder()
			go func() {
				_, _ = c.askReleases(ctx, &clusterpb.ReleaseQuestionsRequest{
					Session: uint64(session), Answered: question.GetNumber(),
					Released: released(ids.Inode(holder.GetIno()), holder.GetKind(), ids.Owner(holder.GetOwner())),
				})
			}()
		}
	}
}

func (c *Client) askReleases(ctx context.Context, req *clusterpb.ReleaseQuestionsRequest) (*clusterpb.ReleaseQuestionsReply, error) {
	ctx, cancel := context.WithTimeout(ctx, rpc.AttemptTimeout)
	defer cancel()
	return rpc.Ask(ctx, c.router, rpc.Node.ReleaseQuestions, req)
}

// noteLocked has questions asked for once a lock was taken.
func (c *Client) noteLocked(op *storepb.TakeLock, result *storepb.Result) {
	if op.GetType() == storepb.LockType_UNLOCK || result.GetCode() != storepb.Code_OK && result.GetCode() != storepb.Code_WAITING {
		return
	}
	select {
	case c.locked <- struct{}{}:
	default:
	}
}
