package forrst

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"lockfs/formats/lockfact"
)

// systemFunction does one of the system functions. The error is an *Error, a [Store]'s, or says what is wrong
// with the arguments as badArguments.
type systemFunction func(ctx context.Context, store Store, request *Request, by Identity) (result any, err error)

var systemFunctions = map[string]systemFunction{
	ReleaseFunction:      release,
	ForceReleaseFunction: forceRelease,
	StatusFunction:       status,
}

// badArguments says what is wrong with a request.
type badArguments struct{ error }

func (g *Guard) system(w http.ResponseWriter, r *http.Request, request *Request, body []byte, do systemFunction) {
	result, err := do(r.Context(), g.Store, request, Identify(request.ID, body))
	known, bad := new(Error), badArguments{}
	switch {
	case err == nil:
		write(w, http.StatusOK, request.Reply(result))
	case errors.As(err, &known):
		fail(w, http.StatusOK, request, known)
	case errors.As(err, &bad):
		fail(w, http.StatusBadRequest, request, newInvalid(inArguments(bad.error)))
	default:
		fail(w, http.StatusServiceUnavailable, request, newUnavailable(err))
	}
}

// inArguments names a field as it is found in the request.
func inArguments(err error) error {
	if field := new(lockfact.FieldError); errors.As(err, &field) && strings.HasPrefix(field.Field, "arguments") {
		return within("call", err)
	}
	return within("call.arguments", err)
}

func release(ctx context.Context, store Store, request *Request, by Identity) (any, error) {
	arguments, err := ParseReleaseArguments(request.Call.Arguments)
	if err != nil {
		return nil, badArguments{err}
	}
	err = store.Release(ctx, arguments.Key, arguments.Owner, by)
	return ReleaseResult{Released: true, Key: arguments.Key}, explain(err, arguments.Key)
}

func forceRelease(ctx context.Context, store Store, request *Request, by Identity) (any, error) {
	arguments, err := ParseKeyArguments(request.Call.Arguments)
	if err != nil {
		return nil, badArguments{err}
	}
	err = store.ForceRelease(ctx, arguments.Key, by)
	return ForceReleaseResult{Released: true, Key: arguments.Key, Forced: true}, explain(err, arguments.Key)
}

func status(ctx context.Context, store Store, request *Request, _ Identity) (any, error) {
	arguments, err := ParseKeyArguments(request.Call.Arguments)
	if err != nil {
		return nil, badArguments{err}
	}
	lock, err := store.Lock(ctx, arguments.Key)
	return StatusOf(arguments.Key, lock, store.Now()), err
}

// explain makes what the document says of a store's error.
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
