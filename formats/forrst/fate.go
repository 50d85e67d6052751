package forrst

import "context"

// Fate is what became of a call when the handler that passed it on returns.
type Fate int

// The fates. A handler that reports nothing has ended the call.
const (
	Ended Fate = iota
	// NotCalled: the call surely never began. Its lock is released, whatever the request says, and the same
	// request may be sent again.
	NotCalled
	// Unfinished: nobody knows whether the call is still at work. Its lock is left to expire.
	Unfinished
)

// Report tells the [Runner] in front of a handler what became of the request with this context. Without a
// Runner it does nothing.
func Report(ctx context.Context, fate Fate) {
	if p, guarded := ctx.Value(passageKey{}).(*passage); guarded {
		p.fate = fate
	}
}

// passage is a request on its way through a Runner.
type passage struct {
	request *Request
	locked  bool
	fate    Fate
}

type passageKey struct{}

// passageOf never answers nil.
func passageOf(ctx context.Context) *passage {
	if p, guarded := ctx.Value(passageKey{}).(*passage); guarded {
		return p
	}
	return &passage{request: new(Request)}
}
