package session

import (
	"context"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/formats/pause"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// AwaitRelease reports whether the holder of a conflicting lock has released it, because a release was in
// progress. The leader asks the mount of the holder. AwaitRelease takes 50 ms at most, and returns false
// without a reply.
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

// AnswerReleases answers the leader's questions until ctx ends: is a release of an owner's locks of a file in
// progress? released waits for such a release and reports whether it came in time. AnswerReleases may call
// released concurrently. The client polls the leader only while the session has locks.
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

// noteLocked starts polling for questions after a lock request.
func (c *Client) noteLocked(op *storepb.TakeLock, result *storepb.Result) {
	if op.GetType() == storepb.LockType_UNLOCK || result.GetCode() != storepb.Code_OK && result.GetCode() != storepb.Code_WAITING {
		return
	}
	select {
	case c.locked <- struct{}{}:
	default:
	}
}
