package cluster

import (
	"context"
	"sync"
	"time"

	"lockfs/raftstore/ids"
)

// endedWaitsWait is how long the leader keeps a question about ended waits. It is below rpc.AttemptTimeout.
const endedWaitsWait = time.Second

// waitQuestions are the questions of sessions about their waits that this node keeps. A question takes the
// place of the one before, which gets its answer at once: the mount asks again when it waits for more.
type waitQuestions struct {
	mu   sync.Mutex
	kept map[ids.Session]*waitQuestion
}

type waitQuestion struct{ end context.CancelFunc }

func newWaitQuestions() *waitQuestions {
	return &waitQuestions{kept: make(map[ids.Session]*waitQuestion)}
}

// begin returns a context that ends when the question is to be answered.
func (q *waitQuestions) begin(ctx context.Context, session ids.Session) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, endedWaitsWait)
	own := &waitQuestion{cancel}
	q.mu.Lock()
	defer q.mu.Unlock()
	if before := q.kept[session]; before != nil {
		before.end()
	}
	q.kept[session] = own
	return ctx, func() {
		cancel()
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.kept[session] == own {
			delete(q.kept, session)
		}
	}
}
