package rpc

import (
	"errors"
	"fmt"

	"lockfs/raftstore/storepb"
)

// ErrUnreachable is wrapped by errors of calls without a connection, or with a connection lost before the
// reply.
var ErrUnreachable = errors.New("it is not reached")

// Refusal is the error of a call which the server has not done. The numbers are those on the wire.
type Refusal byte

// The refusals.
const (
	NoMethod   Refusal = 1 // the server has another version, or the caller is hostile
	Malformed  Refusal = 2 // the request cannot be decoded
	Unsendable Refusal = 3 // the request or reply is too large, or cannot be encoded
	Crowded    Refusal = 4 // too many connections; try later
	NeedsTLS   Refusal = 5 // the server takes no plain connections
	NoTLS      Refusal = 6 // the server takes plain connections only

	refused Refusal = 7 // a [RefusedError]; its result follows

	NotForwarded  Refusal = 8 // the server cannot reach the leader either, or lost it after the request
	MayNotForward Refusal = 9 // the forwarding server is no voter
)

// isPassing reports whether another server, or this one later, may do the call.
func (r Refusal) isPassing() bool {
	return r == Crowded || r == NeedsTLS || r == NoTLS || r == NotForwarded || r == MayNotForward
}

func (r Refusal) Error() string {
	switch r {
	case NoMethod:
		return "there is no such method"
	case Malformed:
		return "the request cannot be read"
	case Unsendable:
		return "the message is too large, or no protobuf"
	case Crowded:
		return "it has too many connections"
	case NeedsTLS:
		return "it takes no plain connections: it runs without --insecure"
	case NoTLS:
		return "it takes plain connections only: it runs with --insecure"
	case NotForwarded:
		return "it cannot reach the leader either"
	case MayNotForward:
		return "the server that forwards the request is not a voter"
	}
	return fmt.Sprintf("refused, for reason %d", byte(r))
}

// RefusedError is a refusal by the cluster: a retry does not help. A handler returns it with a message
// for the caller.
type RefusedError struct{ Result *storepb.Result }

// Code returns the code of the refusal.
func (e *RefusedError) Code() storepb.Code { return e.Result.GetCode() }

func (e *RefusedError) Error() string {
	if e.Result.GetMessage() != "" {
		return e.Result.GetMessage()
	}
	return e.Result.GetCode().String()
}

// isFinal reports whether neither a retry nor another node would help.
func isFinal(err error) bool {
	var result *RefusedError
	var refusal Refusal
	return errors.As(err, &result) || errors.As(err, &refusal) && !refusal.isPassing()
}
