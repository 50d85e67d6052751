package rpc

import (
	"errors"
	"fmt"

	"lockfs/raftstore/storepb"
)

// ErrUnreachable is wrapped by the error of a call whose server could not be reached, or was lost before it had answered.
var ErrUnreachable = errors.New("it is not reached")

// Refusal is the error of a call that the server has not done. The numbers are those on the wire.
type Refusal byte

// The refusals there are.
const (
	NoMethod   Refusal = 1 // the server is of another version, or the caller no friend
	Malformed  Refusal = 2 // the request cannot be read
	Unsendable Refusal = 3 // the request or the answer is larger than it may be, or no protobuf
	Crowded    Refusal = 4 // there are too many connections; later there may be room
	NeedsTLS   Refusal = 5 // the server takes no plain connections
	NoTLS      Refusal = 6 // the server takes plain connections only

	refused Refusal = 7 // a [RefusedError], whose result follows

	NotForwarded  Refusal = 8 // the server cannot reach the leader either; it may have sent the request, though
	MayNotForward Refusal = 9 // the server that forwards the request is no voter
)

// isPassing reports whether another server, or this one later, may do the call: the connection was refused, or the way to the leader.
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
		return "what is to be sent is too large, or no protobuf"
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

// RefusedError is the cluster's own no: asking again would not help. A handler that answers with it refuses the call in these words.
type RefusedError struct{ Result *storepb.Result }

// Code says what kind of no it is.
func (e *RefusedError) Code() storepb.Code { return e.Result.GetCode() }

func (e *RefusedError) Error() string {
	if e.Result.GetMessage() != "" {
		return e.Result.GetMessage()
	}
	return e.Result.GetCode().String()
}

// isFinal tells whether asking again, or another node, would not help.
func isFinal(err error) bool {
	var result *RefusedError
	var refusal Refusal
	return errors.As(err, &result) || errors.As(err, &refusal) && !refusal.isPassing()
}
