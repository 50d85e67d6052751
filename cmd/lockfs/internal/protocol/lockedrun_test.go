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
			lock: lock, answer: func(err error) error { return err }, child: newChild(cmd, []string{"sleep", "0.02"}),
			grace: time.Second, stderr: io.Discard,
		}
		require.Error(t, r.run(t.Context()))
	}
}
