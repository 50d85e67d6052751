package consensus

import (
	"sync"

	"github.com/hashicorp/raft"

	"lockfs/raftstore/ids"
)

// appendPipeline sends entries to a server without waiting for its answers, with what [transport] sees to for single messages.
type appendPipeline struct {
	raft.AppendPipeline
	transport transport
	id        raft.ServerID
	at        raft.ServerAddress
	answers   chan raft.AppendFuture
	ended     chan struct{}
	ending    sync.Once
}

func newAppendPipeline(pipeline raft.AppendPipeline, t transport, id raft.ServerID, at raft.ServerAddress) *appendPipeline {
	p := &appendPipeline{
		AppendPipeline: pipeline, transport: t, id: id, at: at, answers: make(chan raft.AppendFuture), ended: make(chan struct{}),
	}
	go p.check()
	return p
}

// AppendEntries is part of raft.AppendPipeline.
func (p *appendPipeline) AppendEntries(req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	if p.transport.silence.Begun() {
		return nil, errSilent
	}
	shorten(req)
	req.LeaderCommitIndex = uint64(p.transport.log.committed(ids.Index(req.LeaderCommitIndex)))
	return p.AppendPipeline.AppendEntries(req, resp)
}

// Consumer is part of raft.AppendPipeline.
func (p *appendPipeline) Consumer() <-chan raft.AppendFuture { return p.answers }

// Close is part of raft.AppendPipeline.
func (p *appendPipeline) Close() error {
	p.ending.Do(func() { close(p.ended) })
	return p.AppendPipeline.Close()
}

// check passes answers on, but for those of another server.
func (p *appendPipeline) check() {
	for {
		select {
		case answer := <-p.AppendPipeline.Consumer():
			if err := ofServer(p.id, p.at, answer.Response()); err != nil {
				p.transport.addresses.missed(p.id, p.at)
				answer = notAccepted{answer, err}
			}
			select {
			case p.answers <- answer:
			case <-p.ended:
				return
			}
		case <-p.ended:
			return
		}
	}
}

// notAccepted is an answer that is as good as none: raft ends the pipeline for it, and counts nothing.
type notAccepted struct {
	raft.AppendFuture
	err error
}

// Error is part of raft.Future.
func (a notAccepted) Error() error { return a.err }

// Response is part of raft.AppendFuture.
func (notAccepted) Response() *raft.AppendEntriesResponse { return new(raft.AppendEntriesResponse) }
