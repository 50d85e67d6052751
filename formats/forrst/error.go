package forrst

import (
	"errors"

	"lockfs/formats/lockfact"
)

// Code is the code of an error ("Error Codes").
type Code string

// The codes.
const (
	AcquisitionFailed Code = "LOCK_ACQUISITION_FAILED" // held, and the request does not wait
	Timeout           Code = "LOCK_TIMEOUT"            // held for longer than the request waits
	NotFound          Code = "LOCK_NOT_FOUND"          // no lock to release
	OwnershipMismatch Code = "LOCK_OWNERSHIP_MISMATCH" // not released: the owner token is another
	AlreadyReleased   Code = "LOCK_ALREADY_RELEASED"   // released before
)

// Codes of a [Runner] for what the document leaves to the server.
const (
	InvalidRequest   Code = "INVALID_REQUEST"    // details say which field is wrong
	FunctionNotFound Code = "FUNCTION_NOT_FOUND" // there is nobody to pass the call on to
	Unavailable      Code = "UNAVAILABLE"        // the store, or the server that has the function, cannot be reached
	DependencyError  Code = "DEPENDENCY_ERROR"   // that server's answer is missing or none
	DeadlineExceeded Code = "DEADLINE_EXCEEDED"  // the lock expired before there was an answer
	InternalError    Code = "INTERNAL_ERROR"     // the function panicked
	ResponseNotKept  Code = "RESPONSE_NOT_KEPT"  // the request was done before, its response was too large to be kept
)

// Retryable reports whether the same request may succeed later.
func (c Code) Retryable() bool { return c == AcquisitionFailed || c == Timeout || c == Unavailable }

// Error is an entry in a response's errors.
type Error struct {
	Code    Code     `json:"code"`
	Message string   `json:"message"`
	Details *Details `json:"details,omitempty"`
}

// Details says which lock an Error is about, or which field of the request.
type Details struct {
	Key     string    `json:"key,omitempty"`
	Scope   Scope     `json:"scope,omitempty"`
	FullKey string    `json:"full_key,omitempty"`
	Waited  *Duration `json:"waited,omitempty"`
	Field   string    `json:"field,omitempty"`
}

// Error is the code and the message.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// NewAcquisitionFailed is the answer to a request that finds the lock held and does not wait.
func NewAcquisitionFailed(o *Options, fullKey string) *Error {
	details := &Details{Key: o.Key, Scope: o.Scope, FullKey: fullKey}
	return &Error{AcquisitionFailed, "Unable to acquire lock", details}
}

// NewTimeout is the answer to a request that waited for as long as its block option says.
func NewTimeout(o *Options, fullKey string) *Error {
	details := &Details{Key: o.Key, Scope: o.Scope, FullKey: fullKey, Waited: o.Block}
	return &Error{Timeout, "Lock acquisition timed out after " + o.Block.String(), details}
}

// NewNotFound is the answer to a release of a lock that is not there or has expired.
func NewNotFound(fullKey string) *Error {
	return &Error{NotFound, "Lock does not exist or has expired", &Details{Key: fullKey}}
}

// NewOwnershipMismatch is the answer to a release with another owner's lock.
func NewOwnershipMismatch(fullKey string) *Error {
	return &Error{OwnershipMismatch, "Lock is owned by a different process", &Details{Key: fullKey}}
}

// NewAlreadyReleased is the answer to a release of a lock that its owner released before.
func NewAlreadyReleased(fullKey string) *Error {
	return &Error{AlreadyReleased, "Lock was already released", &Details{Key: fullKey}}
}

// newInvalid says what is wrong with a request.
func newInvalid(err error) *Error {
	e := &Error{Code: InvalidRequest, Message: err.Error()}
	if field := new(lockfact.FieldError); errors.As(err, &field) {
		e.Details = &Details{Field: field.Field}
	}
	return e
}

// newUnavailable says why the store did not do what a request needs.
func newUnavailable(err error) *Error {
	if errors.Is(err, ErrRefused) {
		return &Error{Code: Unavailable, Message: "The lock cannot be kept: " + err.Error()}
	}
	return &Error{Code: Unavailable, Message: "The locks cannot be reached: " + err.Error()}
}
