package forrst

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
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
// says. If the process ends during a call, or the answer cannot be recorded, the lock stays until it expires, and after
// that the request is done again.
type Runner struct {
	Store  Store
	Next   http.Handler  // nil: there are only the system functions
	Replay time.Duration // for how long a request that was done is not done again; 0: each request is one of its own
	Logger *slog.Logger  // nil: the default one
}

// ServeHTTP answers a request. The status of a protocol's answer, also of an error about a lock, is 200; that
// of a request that cannot be understood or done is the one that fits.
func (run *Runner) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		fail(w, http.StatusMethodNotAllowed, new(Request), &Error{Code: InvalidRequest, Message: "send the request with POST"})
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxRequest))
	if err != nil {
		status := http.StatusBadRequest
		if large := new(http.MaxBytesError); errors.As(err, &large) {
			status, err = http.StatusRequestEntityTooLarge, fmt.Errorf("the request has more than %d bytes", large.Limit)
		}
		fail(w, status, new(Request), newInvalid(err))
		return
	}
	request, err := ParseRequest(body)
	if err != nil {
		fail(w, http.StatusBadRequest, &Request{ID: idOf(body)}, newInvalid(err))
		return
	}
	r = r.Clone(r.Context())
	r.Header.Del(TokenHeader)
	run.serve(w, r, request, body)
}

func (run *Runner) serve(w http.ResponseWriter, r *http.Request, request *Request, body []byte) {
	if do := systemFunctions[request.Call.Function]; do != nil {
		run.system(w, r, request, body, do)
		return
	}
	options, err := request.LockOptions()
	key := ""
	if err == nil && options != nil {
		key, err = options.FullKey(request.Call.Function)
	}
	switch {
	case err != nil:
		fail(w, http.StatusBadRequest, request, newInvalid(err))
	case run.Next == nil:
		message := "there is no function " + request.Call.Function
		fail(w, http.StatusNotFound, request, &Error{Code: FunctionNotFound, Message: message})
	case options == nil:
		run.Next.ServeHTTP(w, passOn(r.Context(), r, body, &passage{request: request}))
	default:
		(&call{runner: run, request: request, options: options, key: key, body: body}).serve(w, r)
	}
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
