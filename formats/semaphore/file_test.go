package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/formats/semaphore"
)

func newFile(t testing.TB) semaphore.File {
	return semaphore.File{Path: filepath.Join(t.TempDir(), "my.lock"), Tag: "deploy-v1.2.3"}
}

func ExampleFile() {
	dir, _ := os.MkdirTemp("", "")
	defer func() { _ = os.RemoveAll(dir) }()
	file := semaphore.File{Path: filepath.Join(dir, "deploy.lock"), Tag: "deploy-v1.2.3"}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	lock, err := file.Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("deploying as", lock.Lock.Tag)
	fmt.Println(lock.Release(ctx))
	// Output:
	// deploying as deploy-v1.2.3
	// <nil>
}

func put(t testing.TB, file semaphore.File, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(file.Path, []byte(content), 0o644))
}

func contentOf(pid int, taken time.Time) string {
	return fmt.Sprintf("pid=%d\r\ntimestamp=%d\r\nhost=n1\r\n", pid, taken.Unix())
}

func TestFileAcquiringALock(t *testing.T) {
	file := newFile(t)
	before := time.Now().Truncate(time.Second)
	held, err := file.TryAcquire(t.Context())
	require.NoError(t, err)
	content, err := os.ReadFile(file.Path)
	require.NoError(t, err)
	lock := parse(t, string(content))
	require.Equal(t, semaphore.Lock{PID: os.Getpid(), Timestamp: lock.Timestamp, Tag: "deploy-v1.2.3"}, *lock)
	require.Equal(t, *lock, held.Lock)
	require.False(t, lock.Time().Before(before) || lock.Time().After(time.Now()))
	info, err := os.Stat(file.Path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o644), info.Mode().Perm()|0o044, "less the umask")
	life, err := held.StaleAfter()
	require.NoError(t, err)
	require.Equal(t, time.Hour, life)
	require.Empty(t, held.Token())

	_, err = file.TryAcquire(t.Context())
	var blocked *semaphore.HeldError
	require.ErrorAs(t, err, &blocked)
	require.Equal(t, lock, blocked.Lock)
	require.ErrorContains(t, err, fmt.Sprintf("%s is held by process %d (deploy-v1.2.3) since ", file.Path, os.Getpid()))

	require.NoError(t, held.Release(t.Context()))
	require.NoFileExists(t, file.Path)
	var lost *semaphore.LostError
	require.ErrorAs(t, held.Release(t.Context()), &lost)
	require.NoError(t, os.RemoveAll(filepath.Dir(file.Path)))
	_, err = file.TryAcquire(t.Context())
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.False(t, semaphore.Blocks(err))
}

func TestFileStaleDetection(t *testing.T) {
	file := newFile(t)
	file.PID = 4711
	for _, c := range []struct {
		timeout, age time.Duration
		stale        bool
	}{
		{0, 3590 * time.Second, false},
		{0, 3602 * time.Second, true},
		{time.Minute, 50 * time.Second, false},
		{time.Minute, 62 * time.Second, true},
		{time.Minute, -time.Hour, false},
	} {
		file.StaleTimeout = c.timeout
		put(t, file, contentOf(12345, time.Now().Add(-c.age)))
		found, stale, err := file.Read()
		require.NoError(t, err)
		require.Equal(t, 12345, found.PID)
		require.Equal(t, c.stale, stale)
		held, err := file.TryAcquire(t.Context())
		if c.stale {
			require.NoError(t, err)
			require.Equal(t, 4711, held.Lock.PID)
			held.Close()
		} else {
			require.True(t, semaphore.Blocks(err))
		}
	}
}

// Two echos make a lock, and between them it is none: that is neither free nor stale.
func TestFileThatIsBeingWritten(t *testing.T) {
	file := newFile(t)
	for _, content := range []string{"", "pid=1\n", "pid=1\ntimestamp=1", "\xff"} {
		put(t, file, content)
		_, err := file.TryAcquire(t.Context())
		var malformed *semaphore.MalformedError
		require.ErrorAs(t, err, &malformed)
		require.True(t, semaphore.Blocks(err))
		_, _, err = file.Read()
		require.ErrorAs(t, err, &malformed)
		_, err = file.Release(t.Context(), func(*semaphore.Lock) bool { return true })
		require.ErrorAs(t, err, &malformed)
		require.ErrorContains(t, err, "is not a valid lock")
	}
	require.NoError(t, os.Remove(file.Path))
	_, _, err := file.Read()
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestFileBlockingAcquisition(t *testing.T) {
	file := newFile(t)
	first, err := file.Acquire(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = file.Acquire(ctx)
	var timeout *semaphore.TimeoutError
	require.ErrorAs(t, err, &timeout)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	var held *semaphore.HeldError
	require.ErrorAs(t, err, &held)

	got := make(chan error, 1)
	go func() {
		_, err := file.Acquire(t.Context())
		got <- err
	}()
	require.NoError(t, first.Release(t.Context()))
	require.NoError(t, <-got)

	// One that goes stale while it is waited for.
	put(t, file, contentOf(1, time.Now().Add(-time.Second)))
	file.StaleTimeout = 2 * time.Second
	_, err = file.Acquire(t.Context())
	require.NoError(t, err)
}

func TestFileIsForOneAtATime(t *testing.T) {
	file := newFile(t)
	put(t, file, contentOf(1, time.Now().Add(-2*time.Hour)))
	var inside, rounds atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 10 {
				held, err := file.Acquire(t.Context())
				if err != nil || inside.Add(1) != 1 {
					t.Errorf("%v, with %d inside", err, inside.Load())
					return
				}
				rounds.Add(1)
				inside.Add(-1)
				if err := held.Release(t.Context()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 80, rounds.Load())
}

// A holder renews a lock that another judges stale at the same time: either it is renewed, or that one has it and the
// holder learns so.
func TestFileRenewAgainstAThief(t *testing.T) {
	file := newFile(t)
	thief := file
	thief.PID, thief.StaleTimeout = 4711, -time.Second // so that a lock of this second is stale
	for range 20 {
		_ = os.Remove(file.Path)
		held, err := file.TryAcquire(t.Context())
		require.NoError(t, err)
		var renewed, stolen error
		var both sync.WaitGroup
		both.Go(func() { renewed = held.Renew(t.Context()) })
		both.Go(func() { _, stolen = thief.TryAcquire(t.Context()) })
		both.Wait()
		require.NoError(t, stolen)
		if renewed == nil { // before it was stolen
			renewed = held.Renew(t.Context())
		}
		var lost *semaphore.LostError
		require.ErrorAs(t, renewed, &lost)
		found, _, err := thief.Read()
		require.NoError(t, err)
		require.Equal(t, 4711, found.PID)
	}
}

func TestFileRenew(t *testing.T) {
	file := newFile(t)
	held, err := file.TryAcquire(t.Context())
	require.NoError(t, err)
	first := held.Lock.Timestamp
	require.Eventually(t, func() bool {
		require.NoError(t, held.Renew(t.Context()))
		return held.Lock.Timestamp > first
	}, time.Minute, 100*time.Millisecond)
	found, _, err := file.Read()
	require.NoError(t, err)
	require.Equal(t, held.Lock, *found)
	require.NoError(t, os.Remove(file.Path))
	put(t, file, contentOf(1, time.Now()))
	var lost *semaphore.LostError
	require.ErrorAs(t, held.Renew(t.Context()), &lost)
	require.ErrorAs(t, held.Release(t.Context()), &lost)
	found, _, err = file.Read()
	require.NoError(t, err)
	require.Equal(t, 1, found.PID, "it is somebody else's")
}

func TestFileReleaseByAnotherProcess(t *testing.T) {
	file := newFile(t)
	mine := func(l *semaphore.Lock) bool { return l.PID == 4711 }
	_, err := file.Release(t.Context(), mine)
	require.ErrorIs(t, err, fs.ErrNotExist)
	put(t, file, contentOf(4712, time.Now()))
	_, err = file.Release(t.Context(), mine)
	require.True(t, semaphore.Blocks(err))
	put(t, file, contentOf(4712, time.Now().Add(-2*time.Hour)))
	found, err := file.Release(t.Context(), mine)
	require.NoError(t, err, "it is stale")
	require.Equal(t, 4712, found.PID)
	put(t, file, contentOf(4711, time.Now()))
	_, err = file.Release(t.Context(), mine)
	require.NoError(t, err)
	require.NoFileExists(t, file.Path)
}

func TestFileErrorsThatAreNoLocks(t *testing.T) {
	file := newFile(t)
	file.Tag = "a\nb"
	_, err := file.TryAcquire(t.Context())
	requireFieldError(t, err, "tag")
	file.Tag = ""
	require.NoError(t, os.Mkdir(file.Path, 0o700))
	_, err = file.Acquire(t.Context())
	require.ErrorContains(t, err, "not a regular file")
	require.False(t, semaphore.Blocks(err) || errors.Is(err, syscall.EBUSY))
}
