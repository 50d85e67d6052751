package forrst

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"lockfs/formats/lockfact"
)

// systemFunction does a system function, or finds that the request has done it before. The error is an
// *Error, an error of the [Store], or badArguments for a fault of the arguments.
type systemFunction func(ctx context.Context, run *Runner, request *Request, by Identity) (result any, again bool, err error)

var systemFunctions = map[string]systemFunction{
	ReleaseFunction:      release,
	ForceReleaseFunction: forceRelease,
	StatusFunction:       status,
}

// badArguments is a fault of a request.
type badArguments struct{ error }

func (run *Runner) system(w http.ResponseWriter, r *http.Request, request *Request, body []byte, do systemFunction) {
	result, again, err := do(r.Context(), run, request, Identify(request.ID, body))
	known, bad := new(Error), badArguments{}
	switch {
	case err == nil:
		if again {
			w.Header().Set(ReplayHeader, "true")
		}
		write(w, http.StatusOK, request.Reply(result))
	case errors.As(err, &known):
		fail(w, http.StatusOK, request, known)
	case errors.As(err, &bad):
		fail(w, http.StatusBadRequest, request, newInvalid(inArguments(bad.error)))
	default:
		fail(w, http.StatusServiceUnavailable, request, newUnavailable(err))
	}
}

// inArguments names a field by its place in the request.
func inArguments(err error) error {
	if field := new(lockfact.FieldError); errors.As(err, &field) && strings.HasPrefix(field.Field, "arguments") {
		return within("call", err)
	}
	return within("call.arguments", err)
}

func release(ctx context.Context, run *Runner, request *Request, by Identity) (any, bool, error) {
	arguments, err := ParseReleaseArguments(request.Call.Arguments)
	if err != nil {
		return nil, false, badArguments{err}
	}
	again, err := run.Store.Release(ctx, arguments.Key, arguments.Owner, by, run.Replay)
	return ReleaseResult{Released: true, Key: arguments.Key}, again, explain(err, arguments.Key)
}

func forceRelease(ctx context.Context, run *Runner, request *Request, by Identity) (any, bool, error) {
	arguments, err := ParseKeyArguments(request.Call.Arguments)
	if err != nil {
		return nil, false, badArguments{err}
	}
	again, err := run.Store.ForceRelease(ctx, arguments.Key, by, run.Replay)
	return ForceReleaseResult{Released: true, Key: arguments.Key, Forced: true}, again, explain(err, arguments.Key)
}

func status(ctx context.Context, run *Runner, request *Request, _ Identity) (any, bool, error) {
	arguments, err := ParseKeyArguments(request.Call.Arguments)
	if err != nil {
		return nil, false, badArguments{err}
	}
	lock, err := run.Store.Lock(ctx, arguments.Key)
	return StatusOf(arguments.Key, lock, run.Store.Now()), false, err
}

// explain returns the document's error for a store's error.
func explain(err error, key string) error {
	switch {
	case errors.Is(err, ErrNotFound):
		return NewNotFound(key)
	case errors.Is(err, ErrNotOwner):
		return NewOwnershipMismatch(key)
	case errors.Is(err, ErrReleased):
		return NewAlreadyReleased(key)
	}
	return err
}
