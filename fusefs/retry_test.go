package fusefs

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
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

// TestAnOperationThatTheClusterDoesNotRecordIsLogged once, and once more when the cluster has recorded it.
func TestAnOperationThatTheClusterDoesNotRecordIsLogged(t *testing.T) {
	for until, logged := range map[time.Duration]bool{insistWarning / 2: false, time.Minute: true} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			began := time.Now()
			fs := newFileSystem(failing{until: began.Add(until)}, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			over := make(chan struct{})
			fs.insistLater(&storepb.Caller{}, &storepb.Op{Op: &storepb.Op_DropLocks{DropLocks: &storepb.DropLocks{Ino: 7}}}, func() { close(over) })
			<-over
			require.Equal(t, logged, strings.Count(log.String(), "has not recorded an operation yet") == 1, "%s", &log)
			require.Equal(t, logged, strings.Count(log.String(), "has recorded an operation late") == 1, "%s", &log)
			require.Equal(t, logged, strings.Contains(log.String(), "no quorum"), "%s", &log)
		})
	}
}

// failing is an Operator that does nothing before a time.
type failing struct {
	Operator
	until time.Time
}

func (f failing) Mutate(context.Context, *storepb.Caller, *storepb.Op) (*storepb.Result, error) {
	if time.Now().Before(f.until) {
		return nil, errors.New("no quorum")
	}
	return new(storepb.Result), nil
}
