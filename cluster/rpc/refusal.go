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
)

func (r Refusal) Error() string {
	switch r {
	case NoMethod:
		return "there is no such method"
	case Malformed:
		return "the request cannot be read"
	case Unsendable:
		return "what is to be sent is too large, or no protobuf"
	}
	return fmt.Sprintf("refused, for reason %d", byte(r))
}

// RefusedError is the cluster's own no: asking again would not help.
type RefusedError struct{ Result *storepb.Result }

func (e *RefusedError) Error() string {
	if e.Result.GetMessage() != "" {
		return e.Result.GetMessage()
	}
	return e.Result.GetCode().String()
}
