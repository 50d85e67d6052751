package fusefs

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/raftstore/storepb"
)

// leaving answers as an Operator does that begins nothing any more.
type leaving struct {
	Operator
	asked chan struct{}
}

func (l leaving) Mutate(context.Context, *storepb.Caller, *storepb.Op) (*storepb.Result, error) {
	select {
	case l.asked <- struct{}{}:
	default:
	}
	return nil, errors.New("the mount ends")
}

// refusing has room for a command at the third time.
type refusing struct {
	Operator
	asked int
}

func (r *refusing) Mutate(context.Context, *storepb.Caller, *storepb.Op) (*storepb.Result, error) {
	if r.asked++; r.asked < 3 {
		return &storepb.Result{Code: storepb.Code_TOO_MANY_REQUESTS}, nil
	}
	return new(storepb.Result), nil
}

func TestWhatTheClusterHasNoRoomForIsSaidAgain(t *testing.T) {
	ops := new(refusing)
	fs := newFileSystem(ops, Options{})
	over := make(chan struct{})
	fs.insist(&storepb.Caller{}, &storepb.Op{}, func() { close(over) })
	<-over
	require.Equal(t, 3, ops.asked)
}

// TestWhatTheClusterHasToKnowIsSaidUntilTheMountEnds: nobody asks an Operator for ever that has left.
func TestWhatTheClusterHasToKnowIsSaidUntilTheMountEnds(t *testing.T) {
	ops := leaving{asked: make(chan struct{})}
	fs := newFileSystem(ops, Options{})
	over := make(chan struct{})
	fs.insistLater(&storepb.Caller{}, &storepb.Op{}, func() { close(over) })
	for range 3 {
		<-ops.asked
	}
	select {
	case <-over:
		require.Fail(t, "it gave up while there is a mount")
	default:
	}
	fs.OnUnmount()
	select {
	case <-over:
	case <-time.After(10 * time.Second):
		require.Fail(t, "it goes on")
	}
}
