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

// TokenHeader has the lock's fencing token in a request passed on by a [Runner], if the store has tokens. The
// protected resource can refuse a call with a token smaller than an earlier one.
const TokenHeader = "Forrst-Lock-Token"

// ReplayHeader is "true" in an answer from an earlier attempt of the same request. No other answer of a
// [Runner] has it.
const ReplayHeader = "Forrst-Replay"

// OwnerHeader has the owner token made by the server in an answer that is no Forrst response, and so has no
// room for it. It is sent if the lock is left to the client.
const OwnerHeader = "Forrst-Lock-Owner"

// Limits for a Runner's reads, in bytes.
const (
	MaxRequest  = 1 << 20
	MaxResponse = 8 << 20 // to a call with a lock
)

// Runner is an [http.Handler] in front of the functions of a server. It does the extension's system functions
// itself. It passes calls that ask for a lock on while they hold it, and other calls unchanged. It refuses a
// request that it cannot parse, because it may ask for a lock.
//
// The lock is released when Next returns, with any answer or a panic, before the client gets the answer. With
// auto_release false it stays until the client releases it or it expires. A Runner adds the data of the lock
// to an answer that is a JSON object with the protocol's name. Other answers pass unchanged.
//
// A waiting client that goes away leaves the queue. A call in progress goes on without its client, so that
// the next one does not overlap with it. The call's context ends shortly before the lock expires. Next must
// have ended the call when it returns, or report the opposite with [Report].
//
// A request repeated with the same id and body is done once: see the section Replays of the package. If the
// process ends during a call, the lock stays until it expires; then a repeated request is done again. If the
// store refuses to record the answer, the lock is still released ("MUST be released"), and a repeated request
// is a new call.
//
// Requests beyond the limits get the status 503. System functions have no such limit, so a lock can be
// released while requests wait for it.
type Runner struct {
	Store  Store
	Next   http.Handler  // nil: only the system functions exist
	Replay time.Duration // time for which a repeated request gets the first answer; 0: each request is a new call
	Logger *slog.Logger  // nil: slog.Default

	MaxWaiting  int           // limit of requests waiting for their locks; 0: none
	MaxCalls    int           // limit of requests in progress, except system functions; 0: none
	ReadTimeout time.Duration // limit for receiving the body of a request; 0: [DefaultReadTimeout]

	waiting, calls atomic.Int64
}

// DefaultReadTimeout limits the time for receiving the body of a request.
const DefaultReadTimeout = 10 * time.Second

// writeTimeout limits the time for sending an answer.
const writeTimeout = time.Minute

// enter counts a request, unless the limit is reached. The caller calls leave at its end.
func enter(count *atomic.Int64, limit int) (leave func(), ok bool) {
	if n := count.Add(1); limit > 0 && n > int64(limit) {
		count.Add(-1)
		return nil, false
	}
	return func() { count.Add(-1) }, true
}

// crowded refuses a request because the limit is reached.
func crowded(w http.ResponseWriter, request *Request, limit int, are string) {
	w.Header().Set("Retry-After", "1")
	message := fmt.Sprintf("%d requests %s on this server, which is its limit: try again later, or ask another server", limit, are)
	fail(w, http.StatusServiceUnavailable, request, &Error{Code: Unavailable, Message: message})
}

// passOn returns a request with a body already read.
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
