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
	OwnershipMismatch Code = "LOCK_OWNERSHIP_MISMATCH" // not released: the request has another owner token
	AlreadyReleased   Code = "LOCK_ALREADY_RELEASED"   // released before
)

// Codes of a [Runner] for cases that the document leaves to the server.
const (
	InvalidRequest   Code = "INVALID_REQUEST"    // details name the field
	FunctionNotFound Code = "FUNCTION_NOT_FOUND" // the runner has no functions
	Unavailable      Code = "UNAVAILABLE"        // the store, or the server with the function, is unreachable
	DependencyError  Code = "DEPENDENCY_ERROR"   // the other server's answer is missing or invalid
	DeadlineExceeded Code = "DEADLINE_EXCEEDED"  // the lock expired before the answer
	InternalError    Code = "INTERNAL_ERROR"     // the function panicked
	ResponseNotKept  Code = "RESPONSE_NOT_KEPT"  // the request was done before, but its response was too large to keep
)

// Retryable reports whether the same request may succeed later.
func (c Code) Retryable() bool { return c == AcquisitionFailed || c == Timeout || c == Unavailable }

// Error is an entry in a response's errors.
type Error struct {
	Code    Code     `json:"code"`
	Message string   `json:"message"`
	Details *Details `json:"details,omitempty"`
}

// Details names the lock, or the field of the request.
type Details struct {
	Key     string    `json:"key,omitempty"`
	Scope   Scope     `json:"scope,omitempty"`
	FullKey string    `json:"full_key,omitempty"`
	Waited  *Duration `json:"waited,omitempty"`
	Field   string    `json:"field,omitempty"`
}

// Error returns the code and the message.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// NewAcquisitionFailed returns the error for a request that finds the lock held and does not wait.
func NewAcquisitionFailed(o *Options, fullKey string) *Error {
	details := &Details{Key: o.Key, Scope: o.Scope, FullKey: fullKey}
	return &Error{AcquisitionFailed, "Unable to acquire lock", details}
}

// NewTimeout returns the error for a request that waited for the time of its block option.
func NewTimeout(o *Options, fullKey string) *Error {
	details := &Details{Key: o.Key, Scope: o.Scope, FullKey: fullKey, Waited: o.Block}
	return &Error{Timeout, "Lock acquisition timed out after " + o.Block.String(), details}
}

// NewNotFound returns the error for a release of a missing or expired lock.
func NewNotFound(fullKey string) *Error {
	return &Error{NotFound, "Lock does not exist or has expired", &Details{Key: fullKey}}
}

// NewOwnershipMismatch returns the error for a release of another owner's lock.
func NewOwnershipMismatch(fullKey string) *Error {
	return &Error{OwnershipMismatch, "Lock is owned by a different process", &Details{Key: fullKey}}
}

// NewAlreadyReleased returns the error for a release of a lock that its owner released before.
func NewAlreadyReleased(fullKey string) *Error {
	return &Error{AlreadyReleased, "Lock was already released", &Details{Key: fullKey}}
}

// newInvalid returns the error for an invalid request.
func newInvalid(err error) *Error {
	e := &Error{Code: InvalidRequest, Message: err.Error()}
	if field := new(lockfact.FieldError); errors.As(err, &field) {
		e.Details = &Details{Field: field.Field}
	}
	return e
}

// newUnavailable returns the error for a request that the store did not do.
func newUnavailable(err error) *Error {
	if errors.Is(err, ErrRefused) {
		return &Error{Code: Unavailable, Message: "The lock cannot be kept: " + err.Error()}
	}
	return &Error{Code: Unavailable, Message: "The locks cannot be reached: " + err.Error()}
}
