package forrst

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"
)

// TokenHeader has the lock's fencing token in a request that a [Runner] passes on, if the store has tokens.
// What the lock protects can refuse a call with a smaller one than it has seen.
const TokenHeader = "Forrst-Lock-Token"

// ReplayHeader is "true" in an answer that an earlier attempt of the same request was given, or that repeats what it
// did: nothing was done for this one. No other answer of a [Runner] has it.
const ReplayHeader = "Forrst-Replay"

// OwnerHeader has the owner token that the server made in an answer that has no room for it, as it is no Forrst response,
// and leaves its lock to the client.
const OwnerHeader = "Forrst-Lock-Owner"

// What a Runner reads at most, in bytes.
const (
	MaxRequest  = 1 << 20
	MaxResponse = 8 << 20 // to a call with a lock
)

// Runner is an [http.Handler] in front of the functions of a server. It does the extension's system functions
// itself, and passes calls that ask for a lock on while they have it. Others are passed on as they are; what
// cannot be understood is not, as it may ask for a lock.
//
// A lock is released when Next has answered, whatever the answer is, also when Next panics, and before the
// client gets the answer; with auto_release false it stays until the client releases it or it expires. The data of the
// lock are added to an answer that is a JSON object with the protocol's name; any other passes unchanged.
//
// A client that goes away leaves the line in which it waits. Once its call is under way that goes on without
// it, so that the next one does not overlap with it. The call's context ends shortly before the lock expires.
// Next must have ended the call when it returns, or else say so with [Report].
//
// A request that comes again with the same id and the same body is done once, as the section Replays of the package
// says. If the process ends during a call, the lock stays until it expires, and after that the request is done again. If
// the store refuses to record the answer, the lock is released all the same ("MUST be released"), and a repeated request is a new call.
//
// Too many requests at a time are refused with the status 503. The system functions have no such limit, so a lock can be
// released while requests wait for it.
type Runner struct {
	Store  Store
	Next   http.Handler  // nil: there are only the system functions
	Replay time.Duration // how long a repeated request gets the answer of the first one; 0: every request is a new call
	Logger *slog.Logger  // nil: the default one

	MaxWaiting  int           // how many requests may wait for their locks at a time; 0: no limit
	MaxCalls    int           // how many requests other than system functions may be under way, waiting or not; 0: no limit
	ReadTimeout time.Duration // how long a client may take to send the body of a request; 0: [DefaultReadTimeout]

	waiting, calls atomic.Int64
}

// DefaultReadTimeout is how long a client may take to send the body of a request.
const DefaultReadTimeout = 10 * time.Second

// writeTimeout is how long a client may take to read an answer.
const writeTimeout = time.Minute

// enter counts a request that begins, unless there are too many already. leave has to be called when it ends.
func enter(count *atomic.Int64, limit int) (leave func(), ok bool) {
	if n := count.Add(1); limit > 0 && n > int64(limit) {
		count.Add(-1)
		return nil, false
	}
	return func() { count.Add(-1) }, true
}

// crowded refuses a request because as many as the limit are there already.
func crowded(w http.ResponseWriter, request *Request, limit int, are string) {
	w.Header().Set("Retry-After", "1")
	message := fmt.Sprintf("%d requests %s on this server, which is its limit: try again later, or ask another server", limit, are)
	fail(w, http.StatusServiceUnavailable, request, &Error{Code: Unavailable, Message: message})
}

// passOn is a request with a body that was read.
func passOn(ctx context.Context, r *http.Request, body []byte, p *passage) *http.Request {
	r = r.WithContext(context.WithValue(ctx, passageKey{}, p))
	r.ContentLength = int64(len(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.Body, _ = r.GetBody()
	return r
}

func (run *Runner) logger() *slog.Logger {
	if run.Logger != nil {
		return run.Logger
	}
	return slog.Default()
}
