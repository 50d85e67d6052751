package consensus

import (
	"sync"

	"github.com/hashicorp/raft"
)

// appendPipeline sends entries to a server without waiting for replies. It handles messages like single
// ones.
type appendPipeline struct {
	raft.AppendPipeline
	prepare func(*raft.AppendEntriesRequest) error // before it is sent
	accept  func(raft.WithRPCHeader) error         // nil for a reply of the server itself
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

// check forwards replies. A reply of another server ends the pipeline without a word to raft: any reply,
// even with an error, would count as contact with the server.
func (p *appendPipeline) check() {
	for {
		select {
		case answer := <-p.AppendPipeline.Consumer():
			if p.accept(answer.Response()) != nil {
				_ = p.Close() // the next message gets an error
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
