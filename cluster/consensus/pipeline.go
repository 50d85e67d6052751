package consensus

import (
	"sync"

	"github.com/hashicorp/raft"
)

// appendPipeline sends entries to a server without waiting for its answers, with what is seen to for single messages.
type appendPipeline struct {
	raft.AppendPipeline
	prepare func(*raft.AppendEntriesRequest) error // before it is sent
	accept  func(raft.WithRPCHeader) error         // nil for an answer of the server itself
	answers chan raft.AppendFuture
	ended   chan struct{}
	ending  sync.Once
}

func newAppendPipeline(
	pipeline raft.AppendPipeline, prepare func(*raft.AppendEntriesRequest) error, accept func(raft.WithRPCHeader) error,
) *appendPipeline {
	p := &appendPipeline{
		AppendPipeline: pipeline, prepare: prepare, accept: accept, answers: make(chan raft.AppendFuture), ended: make(chan struct{}),
	}
	go p.check()
	return p
}

// AppendEntries is part of raft.AppendPipeline.
func (p *appendPipeline) AppendEntries(req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	if err := p.prepare(req); err != nil {
		return nil, err
	}
	return p.AppendPipeline.AppendEntries(req, resp)
}

// Consumer is part of raft.AppendPipeline.
func (p *appendPipeline) Consumer() <-chan raft.AppendFuture { return p.answers }

// Close is part of raft.AppendPipeline.
func (p *appendPipeline) Close() error {
	p.ending.Do(func() { close(p.ended) })
	return p.AppendPipeline.Close()
}

// check passes answers on, up to one of another server: that ends the pipeline. Raft is told nothing of it, for any answer, also one
// with an error, would count as having heard the server.
func (p *appendPipeline) check() {
	for {
		select {
		case answer := <-p.AppendPipeline.Consumer():
			if p.accept(answer.Response()) != nil {
				_ = p.Close() // what is sent next has an error
				return
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
