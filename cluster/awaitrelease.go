package cluster

import (
	"context"
	"sync"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// close(2) returns before the kernel tells a mount about the close of a file. A program elsewhere that
// learns of the close and tries the lock without waiting would be refused. So its mount asks the leader,
// which asks the holder's mount whether a release is in progress. Then the mount repeats the request
// under another number. The leader asks only about a lock in the way of the request. The holder's mount
// delays one request for each close (fusefs). No lock depends on this: if a message is lost or late, the
// program gets the refusal as before.

const (
	// questionsWait is how long the leader keeps a request for questions. It is below rpc.AttemptTimeout.
	questionsWait = time.Second
	// silentFor is the pause for a mount that did not fetch its last question in time.
	silentFor = time.Second
	// fewAskedSessions is the number of sessions after which idle ones are forgotten, unless more were
	// active the last time.
	fewAskedSessions = 1024
)

// AwaitRelease is part of rpc.Node.
func (n *Node) AwaitRelease(ctx context.Context, req *clusterpb.AwaitReleaseRequest) (*clusterpb.AwaitReleaseReply, error) {
	if _, err := n.identityCheck.checkSession(rpc.CallerOf(ctx), ids.Session(req.GetSession())); err != nil {
		return nil, err
	}
	term, leader := n.leadership.await(ctx)
	if term == 0 {
		return &clusterpb.AwaitReleaseReply{Outcome: clusterpb.Outcome_NOT_LEADER, LeaderAddress: leader}, nil
	}
	holder, holds := ownerOf(req.GetHolder()), false
	n.fsm.View(func(ns *namespace.Namespace) {
		holds = holder.ino == ids.Inode(req.GetWanted().GetIno()) && holder.kind == req.GetWanted().GetKind() &&
			ns.Excludes(holder.session, holder.number, ids.Session(req.GetSession()), req.GetWanted())
	})
	if !holds {
		return &clusterpb.AwaitReleaseReply{Released: true}, nil // it has been released since
	}
	ctx, cancel := context.WithTimeout(ctx, rpc.ReleaseWait)
	defer cancel()
	return &clusterpb.AwaitReleaseReply{Released: n.questions.ask(ctx, holder)}, nil
}

// ReleaseQuestions is part of rpc.Node.
func (n *Node) ReleaseQuestions(ctx context.Context, req *clusterpb.ReleaseQuestionsRequest) (*clusterpb.ReleaseQuestionsReply, error) {
	session := ids.Session(req.GetSession())
	if _, err := n.identityCheck.checkSession(rpc.CallerOf(ctx), session); err != nil {
		return nil, err
	}
	term, leader := n.leadership.await(ctx)
	if term == 0 {
		return &clusterpb.ReleaseQuestionsReply{Outcome: clusterpb.Outcome_NOT_LEADER, LeaderAddress: leader}, nil
	}
	reply := new(clusterpb.ReleaseQuestionsReply)
	if req.GetAnswered() != 0 {
		n.questions.answer(session, req.GetAnswered(), req.GetReleased())
		return reply, nil
	}
	n.fsm.View(func(ns *namespace.Namespace) { reply.NoLocks = !ns.HasAdvisoryLocks(session) })
	if !reply.GetNoLocks() {
		ctx, cancel := context.WithTimeout(ctx, questionsWait)
		defer cancel()
		reply.Questions = n.questions.fetch(ctx, session)
	}
	return reply, nil
}

// advisoryOwner is an owner of locks on a file.
type advisoryOwner struct {
	session ids.Session
	ino     ids.Inode
	kind    storepb.LockKind
	number  ids.Owner
}

func ownerOf(m *clusterpb.AdvisoryOwner) advisoryOwner {
	return advisoryOwner{ids.Session(m.GetSession()), ids.Inode(m.GetIno()), m.GetKind(), ids.Owner(m.GetOwner())}
}

func (o advisoryOwner) message() *clusterpb.AdvisoryOwner {
	return &clusterpb.AdvisoryOwner{Session: uint64(o.session), Ino: uint64(o.ino), Kind: o.kind, Owner: uint64(o.number)}
}

// releaseQuestions are the open questions to mounts, in the leader's memory.
type releaseQuestions struct {
	mu       sync.Mutex
	last     uint64 // number of a question
	sessions map[ids.Session]*askedSession
	most     int // twice the number of sessions that were active when idle ones were forgotten
}

// askedSession has the questions to the mount of one session.
type askedSession struct {
	open    map[advisoryOwner]*releaseQuestion
	numbers map[uint64]advisoryOwner // of the open questions
	newest  []advisoryOwner          // of the questions that no request has fetched, and of some that are closed
	news    chan struct{}            // closed when there is something to fetch; nil: no request waits
	silent  time.Time                // no questions before
	waiting int                      // requests for questions
}

// releaseQuestion is asked once for all concurrent requests about a holder.
type releaseQuestion struct {
	number   uint64
	askers   int
	fetched  bool
	over     chan struct{} // closed once it is answered
	released bool
}

func newReleaseQuestions() *releaseQuestions {
	return &releaseQuestions{sessions: make(map[ids.Session]*askedSession)}
}

// of needs the mutex.
func (q *releaseQuestions) of(session ids.Session) *askedSession {
	s, found := q.sessions[session]
	if !found {
		if len(q.sessions) >= max(q.most, fewAskedSessions) {
			q.forgetIdle()
			q.most = 2 * len(q.sessions)
		}
		s = &askedSession{open: make(map[advisoryOwner]*releaseQuestion), numbers: make(map[uint64]advisoryOwner)}
		q.sessions[session] = s
	}
	return s
}

func (q *releaseQuestions) forgetIdle() {
	for id, s := range q.sessions {
		if len(s.open) == 0 && s.waiting == 0 {
			delete(q.sessions, id)
		}
	}
}

// ask waits until the holder's mount has answered; the end of ctx means no.
func (q *releaseQuestions) ask(ctx context.Context, holder advisoryOwner) (released bool) {
	question := q.begin(holder)
	if question == nil {
		return false
	}
	select {
	case <-question.over:
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.of(holder.session)
	if question.askers--; question.askers == 0 && s.open[holder] == question {
		s.close(holder, question)
		if !question.fetched {
			s.silent = time.Now().Add(silentFor)
		}
	}
	return question.released
}

// begin joins or starts a question. Nil: the mount is silent.
func (q *releaseQuestions) begin(holder advisoryOwner) *releaseQuestion {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.of(holder.session)
	if time.Now().Before(s.silent) {
		return nil
	}
	question, found := s.open[holder]
	if !found {
		q.last++
		question = &releaseQuestion{number: q.last, over: make(chan struct{})}
		s.open[holder], s.numbers[question.number] = question, holder
		s.newest = append(s.newest, holder)
		if s.news != nil {
			close(s.news)
			s.news = nil
		}
	}
	question.askers++
	return question
}

// fetch waits for new questions to a session's mount until ctx ends.
func (q *releaseQuestions) fetch(ctx context.Context, session ids.Session) []*clusterpb.ReleaseQuestion {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.of(session)
	s.silent = time.Time{}
	s.waiting++
	defer func() { s.waiting-- }()
	for {
		if ctx.Err() != nil {
			return nil // the mount may be gone: its next request fetches the questions
		}
		var fetched []*clusterpb.ReleaseQuestion
		for _, holder := range s.newest {
			if question := s.open[holder]; question != nil && !question.fetched {
				question.fetched = true
				fetched = append(fetched, &clusterpb.ReleaseQuestion{Number: question.number, Holder: holder.message()})
			}
		}
		if s.newest = nil; len(fetched) > 0 {
			return fetched
		}
		if s.news == nil {
			s.news = make(chan struct{})
		}
		news := s.news
		q.mu.Unlock()
		select {
		case <-news:
		case <-ctx.Done():
		}
		q.mu.Lock()
	}
}

// answer completes a question, if it is still open.
func (q *releaseQuestions) answer(session ids.Session, number uint64, released bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.of(session)
	if holder, open := s.numbers[number]; open {
		question := s.open[holder]
		question.released = released
		close(question.over)
		s.close(holder, question)
	}
}

func (s *askedSession) close(holder advisoryOwner, question *releaseQuestion) {
	delete(s.open, holder)
	delete(s.numbers, question.number)
}
