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
