package protocol

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"lockfs/cmd/lockfs/internal/cli"
)

// toldLock is a lock that is taken just as a signal comes.
type toldLock struct {
	runLock

	seen chan os.Signal
}

func (l *toldLock) acquire(context.Context) (string, error) {
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		return "", err
	}
	<-l.seen
	return "", nil
}

func (l *toldLock) keep(ctx context.Context, _ io.Writer) error {
	<-ctx.Done()
	return nil
}

func (l *toldLock) release(context.Context, *os.ProcessState) error { return nil }

func (l *toldLock) giveBack(context.Context) error { return nil }

// TestASignalJustBeforeTheCommandIsNotLost: either nothing is started, or the command is told.
func TestASignalJustBeforeTheCommandIsNotLost(t *testing.T) {
	lock := &toldLock{seen: make(chan os.Signal, 1)}
	signal.Notify(lock.seen, syscall.SIGTERM)
	defer signal.Stop(lock.seen)
	for range 500 {
		cmd := new(cobra.Command)
		r := &lockedRun{
			lock: lock, answer: func(err error) error { return err }, child: newChild(cmd, []string{"sleep", "0.02"}, syscall.SIGTERM),
			grace: time.Second, stderr: io.Discard,
		}
		require.Error(t, r.run(t.Context()))
	}
}

// TestASignalJustAfterTheCommandIsNotLost: it is for the end of what is done then, which may hang.
func TestASignalJustAfterTheCommandIsNotLost(t *testing.T) {
	seen := make(chan os.Signal, 1)
	signal.Notify(seen, syscall.SIGTERM)
	defer signal.Stop(seen)
	for range 50 {
		c := newChild(new(cobra.Command), []string{"true"}, syscall.SIGTERM)
		require.NoError(t, c.start())
		<-c.done
		require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGTERM))
		<-seen
		_, lost := c.await(nil)
		require.NoError(t, lost)
		told, stop := cli.UntilTold(t.Context(), c.ending)
		<-told.Done()
		stop()
		c.stopListening()
	}

	reaped := newChild(new(cobra.Command), []string{"true"}, syscall.SIGTERM)
	require.NoError(t, reaped.cmd.Run())
	require.False(t, reaped.handOn(syscall.SIGTERM), "nobody is there, though that is not known yet")
}

// TestWhoIsToldToEndWaitsForNoFileSystem: a mount that hangs as a lock is taken keeps nobody.
func TestWhoIsToldToEndWaitsForNoFileSystem(t *testing.T) {
	told, tell := context.WithCancel(t.Context())
	tell()
	hangs := make(chan struct{})
	defer close(hangs)
	err := whileItMay(told, time.Millisecond, func() error {
		<-hangs
		return nil
	}, "it is not known")
	require.ErrorContains(t, err, "it is not known: its file system does not answer")
	require.NoError(t, whileItMay(told, time.Minute, func() error { return nil }, "it is not known"))
}
