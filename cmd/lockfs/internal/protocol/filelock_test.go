package protocol

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/formats/semaphore"
)

// lateLock is a lock of which it is told when some of its life is over.
type lateLock struct {
	renewals, releases int
	renewal            func() error
	refusals           int // of its release
	wait               time.Duration
}

func (l *lateLock) Path() string                { return "/locks/late" }
func (l *lateLock) Token() string               { return "7" }
func (l *lateLock) Check(context.Context) error { return nil }

func (l *lateLock) Release(context.Context) error {
	if l.releases++; l.releases <= l.refusals {
		return errors.New("no answer")
	}
	return nil
}

// acquire takes the lock, which lives for a time after it was renewed, and of which is told late.
func (l *lateLock) acquire(t testing.TB, late, lifetime time.Duration) error {
	file := &fileLock{path: l.Path(), wait: l.wait, blocks: semaphore.Blocks}
	file.take = func(context.Context) (held, error) {
		file.since -= late
		return l, nil
	}
	file.renew = func(context.Context) error {
		l.renewals++
		return l.renewal()
	}
	file.life = func() (time.Duration, error) { return lifetime, nil }
	token, err := file.acquire(t.Context())
	if err == nil {
		require.Equal(t, "7", token)
	}
	return err
}

// TestALockThatIsToldLateIsRenewedFirst: no command begins under a lock that may be stale by then.
func TestALockThatIsToldLateIsRenewedFirst(t *testing.T) {
	const late = time.Hour
	soon := func() error { return nil }
	prompt := lateLock{renewal: soon, wait: time.Minute}
	require.NoError(t, prompt.acquire(t, late, 20*late))
	require.Zero(t, prompt.renewals)
	for _, lifetime := range []time.Duration{10 * late, late / 2} {
		told := lateLock{renewal: soon, wait: time.Minute}
		require.NoError(t, told.acquire(t, late, lifetime))
		require.Equal(t, 1, told.renewals)
		require.Zero(t, told.releases)
	}
	for name, c := range map[string]struct {
		renewal  func() error
		lifetime time.Duration
		code     int // 0: any error's
		said     string
	}{
		"not renewed": {func() error { return errors.New("no answer") }, late, 0, "cannot be renewed"},
		"lost":        {func() error { return &semaphore.LostError{} }, late, cli.ExitTimedOut, "cannot be renewed"},
		"late again":  {soon, time.Nanosecond, 0, "longer than the lifetime of the lock"},
	} {
		t.Run(name, func(t *testing.T) {
			refused := lateLock{renewal: c.renewal, refusals: 2, wait: time.Nanosecond}
			err := refused.acquire(t, late, c.lifetime)
			require.ErrorContains(t, err, "not acquired")
			require.ErrorContains(t, err, c.said)
			var exit *cli.ExitStatus
			if errors.As(err, &exit) || c.code != 0 {
				require.Equal(t, c.code, exit.Code)
			}
			require.Equal(t, 3, refused.releases, "until it is released")
		})
	}
}

// TestALockThatIsLostAtOnceIsTakenAgain: who may wait does not end because of that.
func TestALockThatIsLostAtOnceIsTakenAgain(t *testing.T) {
	const late = time.Hour
	again := lateLock{wait: forEver}
	again.renewal = func() error {
		if again.renewals < 3 {
			return &semaphore.LostError{}
		}
		return nil
	}
	require.NoError(t, again.acquire(t, late, 5*late))
	require.Equal(t, 3, again.renewals)

	kept := lateLock{wait: forEver, refusals: 1000, renewal: func() error { return &semaphore.LostError{} }}
	err := kept.acquire(t, late, 5*late)
	require.ErrorIs(t, err, errNotReleased, "it would wait for itself")
	require.False(t, waitedInVain(err), "nothing hides that")
	require.Equal(t, 1, kept.renewals)
}
