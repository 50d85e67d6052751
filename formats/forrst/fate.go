package forrst

import "context"

// Fate is the state of a call when its handler returns.
type Fate int

// The fates. Without a report the call has ended.
const (
	Ended Fate = iota
	// NotCalled: the call certainly never began. Its lock is released in any case, and the same request may
	// be sent again.
	NotCalled
	// Unfinished: the call may still run. Its lock is left to expire.
	Unfinished
)

// Report reports the fate of the request with this context to its [Runner]. Without a Runner it does nothing.
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

// passageOf never returns nil.
func passageOf(ctx context.Context) *passage {
	if p, guarded := ctx.Value(passageKey{}).(*passage); guarded {
		return p
	}
	return &passage{request: new(Request)}
}
