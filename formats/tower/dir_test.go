//go:build unix

package tower_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"lockfs/formats/tower"
)

// clock is a clock that a test moves.
type clock struct{ now atomic.Pointer[time.Time] }

func (c *clock) set(t time.Time)     { c.now.Store(&t) }
func (c *clock) add(d time.Duration) { c.set(c.now.Load().Add(d)) }

func newDir(t testing.TB) (tower.Dir, *clock) {
	t.Helper()
	c := new(clock)
	c.set(at("10:30:10"))
	d := tower.Dir{Path: filepath.Join(t.TempDir(), "logs", "locks"), Now: func() time.Time { return *c.now.Load() }}
	require.NoError(t, d.Make())
	return d, c
}

func request(t testing.TB, name, requestID string) *tower.Lock {
	t.Helper()
	l, err := tower.New(name, requestID, "deploy-app", "1.2.0", time.Now())
	require.NoError(t, err)
	l.Actor, l.HostID, l.PID = "claude-code", "tower-01", 12345
	return l
}

func take(t testing.TB, d tower.Dir, name, requestID string) *tower.Acquisition {
	t.Helper()
	taken, err := d.Acquire(request(t, name, requestID), false)
	require.NoError(t, err)
	return taken
}

func contentOf(t testing.TB, d tower.Dir, name string) string {
	t.Helper()
	content, err := os.ReadFile(d.LockPath(name))
	require.NoError(t, err)
	return string(content)
}

// requireOnly fails if the directory has anything but these files.
func requireOnly(t testing.TB, d tower.Dir, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(d.Path)
	require.NoError(t, err)
	found := []string{}
	for _, entry := range entries {
		found = append(found, entry.Name())
	}
	require.ElementsMatch(t, names, found)
}

func TestTower101DirectoryHasMode700(t *testing.T) {
	d, _ := newDir(t)
	info, err := os.Stat(d.Path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
	require.Empty(t, d.Exposed())
	require.NoError(t, os.Chmod(d.Path, 0o777))
	require.NoError(t, d.Make())
	require.Equal(t, "has mode 0777, and should have 0700", d.Exposed())
	d.Path = filepath.Join(d.Path, "file")
	require.NoError(t, os.WriteFile(d.Path, nil, 0o600))
	require.ErrorIs(t, d.Make(), syscall.ENOTDIR)
}

func TestTower41FreeLockIsCreated(t *testing.T) {
	d, _ := newDir(t)
	taken := take(t, d, "money-tracker-production", "req_abc123def456")
	require.Equal(t, filepath.Join(d.Path, "money-tracker-production.lock"), taken.Path)
	require.Nil(t, taken.Previous)
	want := strings.Replace(example, "10:30:40", "10:30:10", 1)
	require.JSONEq(t, want, contentOf(t, d, "money-tracker-production"))
	requireOnly(t, d, "money-tracker-production.lock")
	require.Equal(t, []any{taken.Lock.Acquired(taken.Path, at("10:30:10"))}, taken.Events())
}

func TestTower44ActiveLockBlocksAlsoWithForce(t *testing.T) {
	d, c := newDir(t)
	take(t, d, "a", "req_xyz789")
	before := contentOf(t, d, "a")
	c.add(900 * time.Second) // not greater than its ttl
	for _, force := range []bool{false, true} {
		_, err := d.Acquire(request(t, "a", "req_2"), force)
		var blocked *tower.BlockedError
		require.ErrorAs(t, err, &blocked)
		require.True(t, tower.Blocks(err))
		require.ErrorContains(t, err, `held by request "req_xyz789" ("claude-code" on "tower-01"), last heartbeat 900 s ago; wait`)
		requireJSON(t, `{"error":"lock_blocked","lock_name":"a","held_by":{"request_id":"req_xyz789","actor":"claude-code",`+
			`"intent":"deploy-app","created_at":"2025-12-18T10:30:10Z","last_heartbeat_at":"2025-12-18T10:30:10Z"},`+
			`"suggestion":"Wait for completion or use --force-lock if stale"}`, blocked.Response())
	}
	require.Equal(t, before, contentOf(t, d, "a"))
	requireOnly(t, d, "a.lock")
}

func TestTower63StaleLockBlocksWithoutForce(t *testing.T) {
	d, c := newDir(t)
	take(t, d, "a", "req_old123")
	before := contentOf(t, d, "a")
	c.add(1800 * time.Second)
	_, err := d.Acquire(request(t, "a", "req_2"), false)
	var blocked *tower.BlockedError
	require.ErrorAs(t, err, &blocked)
	require.ErrorContains(t, err, "--force-lock")
	requireJSON(t, `{"error":"lock_stale","lock_name":"a","stale_since":"2025-12-18T10:45:10Z","age_seconds":1800,`+
		`"ttl_seconds":900,"held_by":{"request_id":"req_old123","actor":"claude-code","host_id":"tower-01","pid":12345},`+
		`"suggestion":"Use --force-lock to acquire (stale lock will be logged)"}`, blocked.Response())
	require.Equal(t, before, contentOf(t, d, "a"))
}

func TestTower71StaleAndForcedIsStolen(t *testing.T) {
	d, c := newDir(t)
	take(t, d, "a", "req_old123")
	before := contentOf(t, d, "a")
	c.add(901 * time.Second)
	taken, err := d.Acquire(request(t, "a", "req_new456"), true)
	require.NoError(t, err)
	require.Equal(t, before, string(taken.Previous))
	require.Contains(t, contentOf(t, d, "a"), `"req_new456"`)
	requireOnly(t, d, "a.lock")

	events := taken.Events()
	require.Len(t, events, 2)
	stolen := events[0].(tower.Stolen)
	require.Equal(t, tower.Hash([]byte(before)), stolen.PreviousLockHash)
	require.Equal(t, "req_old123", stolen.PreviousLock.RequestID)
	require.Equal(t, "lock_acquired", events[1].(tower.Acquired).Event)
}

func TestTower122WhatIsNoValidLockBlocksAndIsNeverStolen(t *testing.T) {
	for problem, prepare := range map[string]func(path string) error{
		"unexpected EOF":         func(p string) error { return os.WriteFile(p, nil, 0o600) },
		`is "money-tracker-prod`: func(p string) error { return os.WriteFile(p, []byte(example), 0o600) },
		"not a regular file":     func(p string) error { return os.Mkdir(p, 0o700) },
		"not a regular":          func(p string) error { return os.Symlink("nowhere", p) },
		"a regular file":         func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"too large":              func(p string) error { return os.WriteFile(p, make([]byte, 300<<10), 0o600) },
	} {
		d, c := newDir(t)
		require.NoError(t, prepare(d.LockPath("a")))
		c.add(1000 * time.Hour)
		_, err := d.Acquire(request(t, "a", "req_2"), true)
		var invalid *tower.InvalidError
		require.ErrorAs(t, err, &invalid, problem)
		require.True(t, tower.Blocks(err))
		require.ErrorContains(t, err, problem)
		require.ErrorContains(t, err, "remove it if nobody uses it")
		text, err := json.Marshal(invalid.Response())
		require.NoError(t, err)
		require.Contains(t, string(text), `{"error":"lock_invalid","lock_name":"a","lock_path":"`+d.LockPath("a"))
		status, err := d.Check("a")
		require.NoError(t, err)
		require.Equal(t, tower.Invalid, status.State)
		_, err = d.Heartbeat("a", "req_1")
		require.ErrorAs(t, err, &invalid)
		_, err = d.Release("a", "req_1")
		require.ErrorAs(t, err, &invalid)
		_, err = os.Lstat(d.LockPath("a"))
		require.NoError(t, err)
	}
}

func TestAcquireWhereNothingCanBeLinked(t *testing.T) {
	for _, errno := range []error{syscall.EPERM, syscall.EOPNOTSUPP, syscall.ENOSYS} {
		d, _ := newDir(t)
		d = d.Failing(func(string, string) error { return errno }, nil, nil)
		take(t, d, "a", "req_1")
		_, err := d.Acquire(request(t, "a", "req_2"), false)
		require.True(t, tower.Blocks(err))
		requireOnly(t, d, "a.lock")
	}
	d, _ := newDir(t)
	lying := d.Failing(func(from, to string) error { _ = os.Link(from, to); return syscall.EIO }, nil, nil)
	take(t, lying, "a", "req_1") // the link is there all the same
	failing := d.Failing(func(string, string) error { return syscall.EIO }, nil, nil)
	_, err := failing.Acquire(request(t, "b", "req_1"), false)
	require.ErrorIs(t, err, syscall.EIO)
	require.False(t, tower.Blocks(err))
	requireOnly(t, d, "a.lock")
}

// The file system may know better than this host's clock.
func TestStealThatTheFileSystemRefuses(t *testing.T) {
	d, c := newDir(t)
	take(t, d, "a", "req_1")
	before := contentOf(t, d, "a")
	c.add(time.Hour)
	busy := d.Failing(nil, func(string, string) error { return syscall.EBUSY }, nil)
	_, err := busy.Acquire(request(t, "a", "req_2"), true)
	var blocked *tower.BlockedError
	require.ErrorAs(t, err, &blocked)
	require.False(t, blocked.Stale)
	require.ErrorContains(t, err, "not stale")
	require.ErrorIs(t, err, syscall.EBUSY)

	// Another lock has come under the name: it is judged anew, and is live.
	for _, refusal := range []error{syscall.ESTALE, syscall.ENOENT} {
		replaced := d.Failing(nil, func(string, string) error {
			other := request(t, "a", "req_3")
			other.CreatedAt, other.LastHeartbeatAt = d.Now(), d.Now()
			text, err := other.Render()
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(d.LockPath("a"), text, 0o600))
			return refusal
		}, nil)
		_, err = replaced.Acquire(request(t, "a", "req_2"), true)
		require.ErrorAs(t, err, &blocked)
		require.Equal(t, "req_3", blocked.Lock.RequestID)
		require.NoError(t, os.WriteFile(d.LockPath("a"), []byte(before), 0o600))
	}

	d = d.Mounted(func(path, name string) string {
		require.Equal(t, filepath.Join(d.Path, "a.lock"), path)
		return map[string]string{"format": "tower", "state": "held", "token": "17"}[name]
	})
	status, err := d.Check("a")
	require.NoError(t, err)
	require.Equal(t, tower.Active, status.State)
	require.EqualValues(t, 17, status.Token)
	_, err = d.Acquire(request(t, "a", "req_2"), true)
	require.ErrorAs(t, err, &blocked)
	require.False(t, blocked.Stale)
	requireOnly(t, d, "a.lock")
}

// One that is refused again and again, though the lock stays the same, is not tried for ever.
func TestStealEnds(t *testing.T) {
	d, c := newDir(t)
	take(t, d, "a", "req_1")
	c.add(time.Hour)
	stuck := d.Failing(nil, func(string, string) error { return syscall.ESTALE }, nil)
	_, err := stuck.Acquire(request(t, "a", "req_2"), true)
	require.ErrorContains(t, err, "changes all the time")
	require.True(t, tower.Blocks(err))
}

// At the moment of the steal its holder renews it.
func TestStealOfALockThatIsRenewedMeanwhile(t *testing.T) {
	d, c := newDir(t)
	take(t, d, "a", "req_1")
	c.add(time.Hour)
	asked := 0
	mounted := d.Mounted(func(_, name string) string {
		if name == "format" {
			return "tower"
		}
		if asked++; asked == 1 {
			_, err := d.Heartbeat("a", "req_1")
			require.NoError(t, err)
			return "stale" // it was, when it was read
		}
		return "held"
	})
	_, err := mounted.Acquire(request(t, "a", "req_2"), true)
	var blocked *tower.BlockedError
	require.ErrorAs(t, err, &blocked)
	require.Equal(t, d.Now(), blocked.Lock.LastHeartbeatAt)
	require.Contains(t, contentOf(t, d, "a"), `"req_1"`)
}

// For any lock of any layout, and whatever other fields it has.
func TestTower53HeartbeatOfAFileChangesNothingElse(t *testing.T) {
	d, c := newDir(t)
	rapid.Check(t, func(r *rapid.T) {
		fields := map[string]string{"lock_version": `"v1"`, "lock_name": `"a"`, "request_id": `"req_1"`,
			"created_at": `"2025-12-18T10:30:10Z"`, "last_heartbeat_at": `"2025-12-18T10:30:10.5Z"`}
		texts := rapid.StringOfN(rapid.RuneFrom([]rune(`ab"\é<&`+"\n\u2028")), 1, 5, -1)
		for _, name := range []string{"actor", "intent", "intent_version", "host_id"} {
			text, _ := json.Marshal(texts.Draw(r, name))
			fields[name] = string(text)
		}
		fields["pid"] = fmt.Sprint(rapid.Int32Min(1).Draw(r, "pid"))
		fields["ttl_seconds"] = fmt.Sprint(rapid.Int64Range(1, 1e6).Draw(r, "ttl"))
		others := rapid.MapOfN(rapid.StringMatching(`x[a-z"\\]{0,3}`), rapid.SampledFrom(
			[]string{`null`, ` 1.50e1`, `[ {"last_heartbeat_at":"no"} ]`, `"last_heartbeat_at"`, `{"a" : {}}`}), 0, 4).Draw(r, "others")
		for name, value := range others {
			fields[name] = value
		}
		names := rapid.Permutation(keys(fields)).Draw(r, "order")
		blank := rapid.SampledFrom([]string{"", " ", "\n\t", "\r\n"})
		members := []string{}
		for _, name := range names {
			quoted, _ := json.Marshal(name)
			members = append(members, blank.Draw(r, "blank")+string(quoted)+blank.Draw(r, "blank")+":"+
				blank.Draw(r, "blank")+fields[name]+blank.Draw(r, "blank"))
		}
		before := "{" + strings.Join(members, ",") + "}" + blank.Draw(r, "end")
		mode := fs.FileMode(rapid.SampledFrom([]uint32{0o600, 0o644, 0o440}).Draw(r, "mode"))
		_ = os.Remove(d.LockPath("a"))
		require.NoError(r, os.WriteFile(d.LockPath("a"), []byte(before), mode))
		require.NoError(r, os.Chmod(d.LockPath("a"), mode))
		c.set(at("10:31:00").Add(time.Duration(rapid.Int64Range(0, 1e15).Draw(r, "now"))))

		renewed, err := d.Heartbeat("a", "req_1")
		require.NoError(r, err)
		now := d.Now().UTC().Truncate(time.Second)
		require.Equal(r, now, renewed.LastHeartbeatAt)
		want := strings.Replace(before, `"2025-12-18T10:30:10.5Z"`, `"`+now.Format(time.RFC3339)+`"`, 1)
		require.Equal(r, want, contentOf(t, d, "a"))
		info, err := os.Stat(d.LockPath("a"))
		require.NoError(r, err)
		require.Equal(r, mode, info.Mode().Perm())
		requireOnly(t, d, "a.lock")
	})
}

func keys(m map[string]string) (names []string) {
	for name := range m {
		names = append(names, name)
	}
	return names
}

func TestHeartbeatAndReleaseOfALostLock(t *testing.T) {
	d, _ := newDir(t)
	for _, act := range []func(string, string) (*tower.Lock, error){d.Heartbeat, d.Release} {
		_ = os.Remove(d.LockPath("a"))
		_, err := act("a", "req_1")
		var lost *tower.LostError
		require.ErrorAs(t, err, &lost)
		require.Nil(t, lost.Lock)
		require.ErrorContains(t, err, "there is none")

		take(t, d, "a", "req_2")
		before := contentOf(t, d, "a")
		_, err = act("a", "req_1")
		require.ErrorAs(t, err, &lost)
		require.Equal(t, "req_2", lost.Lock.RequestID)
		require.ErrorContains(t, err, `request "req_2" holds it`)
		require.Equal(t, before, contentOf(t, d, "a"))

		_, err = act("a", "x\ny")
		requireFieldError(t, err, "request_id")
		_, err = act("../a", "req_1")
		requireFieldError(t, err, "lock_name")
	}
}

// A refusal means that the lock is lost only if it is.
func TestRefusalsOfTheFileSystem(t *testing.T) {
	d, _ := newDir(t)
	for _, refusal := range []syscall.Errno{syscall.EBUSY, syscall.ENOENT, syscall.ESTALE, syscall.EACCES} {
		_ = os.Remove(d.LockPath("a"))
		take(t, d, "a", "req_1")
		own := d.Failing(nil, func(string, string) error { return refusal }, func(string) error { return refusal })
		_, err := own.Heartbeat("a", "req_1")
		var lost *tower.LostError
		require.Error(t, err)
		require.False(t, errors.As(err, &lost), "it is still there")
		released, err := own.Release("a", "req_1")
		require.Error(t, err)
		require.False(t, errors.As(err, &lost))
		require.Equal(t, "req_1", released.RequestID)

		steal := func() error {
			text := strings.ReplaceAll(contentOf(t, d, "a"), "req_1", "req_2")
			require.NoError(t, os.WriteFile(d.LockPath("a"), []byte(text), 0o600))
			return refusal
		}
		stolen := d.Failing(nil, func(string, string) error { return steal() }, func(string) error { return steal() })
		_, err = stolen.Heartbeat("a", "req_1")
		require.ErrorAs(t, err, &lost)
		require.NoError(t, os.Remove(d.LockPath("a")))
		take(t, d, "a", "req_1")
		_, err = stolen.Release("a", "req_1")
		require.ErrorAs(t, err, &lost)
		requireOnly(t, d, "a.lock")
	}
}

func TestTower81ReleaseRemovesTheFile(t *testing.T) {
	d, _ := newDir(t)
	take(t, d, "a", "req_1")
	released, err := d.Release("a", "req_1")
	require.NoError(t, err)
	require.Equal(t, at("10:30:10"), released.CreatedAt)
	requireOnly(t, d)
}

func TestTokenOnAMount(t *testing.T) {
	d, _ := newDir(t)
	mounted := d.Mounted(func(_, name string) string { return map[string]string{"token": "17"}[name] })
	require.EqualValues(t, 17, take(t, mounted, "a", "req_1").Token)
	require.Zero(t, take(t, d, "b", "req_1").Token)

	stolen := d.Mounted(func(path, name string) string {
		text := strings.ReplaceAll(contentOf(t, d, "c"), "req_1", "req_2")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return "18"
	})
	_, err := stolen.Acquire(request(t, "c", "req_1"), false)
	var lost *tower.LostError
	require.ErrorAs(t, err, &lost)
	require.True(t, tower.Blocks(err))
}

func TestCheckAndList(t *testing.T) {
	d, c := newDir(t)
	take(t, d, "old", "req_1")
	c.add(901 * time.Second)
	take(t, d, "new", "req_2")
	require.NoError(t, os.WriteFile(d.LockPath("broken"), []byte("{"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(d.Path, "Bad.lock"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(d.Path, "new.lock.req.tmp"), nil, 0o600))

	locks, err := d.List()
	require.NoError(t, err)
	states := map[string]tower.State{}
	for _, s := range locks {
		states[s.LockName] = s.State
	}
	require.Equal(t, map[string]tower.State{
		"old": tower.Stale, "new": tower.Active, "broken": tower.Invalid, "Bad": tower.Invalid,
	}, states)

	s, err := d.Check("old")
	require.NoError(t, err)
	require.EqualValues(t, 901, *s.AgeSeconds)
	require.Equal(t, at("10:45:10"), *s.StaleSince)
	require.Equal(t, contentOf(t, d, "old"), string(s.Content))
	s, err = d.Check("free")
	require.NoError(t, err)
	requireJSON(t, `{"lock_name":"free","lock_path":"`+d.LockPath("free")+`","state":"free"}`, s)

	missing := tower.Dir{Path: filepath.Join(d.Path, "missing"), Now: d.Now}
	_, err = missing.Check("a")
	require.ErrorIs(t, err, fs.ErrNotExist, "a directory that is misspelled has no free locks")
	_, err = missing.List()
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestLeftoversOfKilledProcesses(t *testing.T) {
	d, c := newDir(t)
	c.set(time.Now())
	const old, young, script = "a.lock.0123456789abcdef.tmp", "a.lock.fedcba9876543210.tmp", "a.lock.req_1.tmp"
	for _, name := range []string{old, young, script, "b.lock.0123456789abcdef.tmp"} {
		path := filepath.Join(d.Path, name)
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		if name != young {
			require.NoError(t, os.Chtimes(path, time.Time{}, time.Now().Add(-2*time.Hour)))
		}
	}
	take(t, d, "a", "req_1")
	requireOnly(t, d, "a.lock", young, script, "b.lock.0123456789abcdef.tmp")
}

func TestAcquireWait(t *testing.T) {
	d, _ := newDir(t)
	take(t, d, "a", "req_1")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := d.AcquireWait(ctx, request(t, "a", "req_2"), true)
	require.True(t, tower.Blocks(err))

	done := make(chan error, 1)
	go func() {
		_, err := d.AcquireWait(t.Context(), request(t, "a", "req_2"), false)
		done <- err
	}()
	_, err = d.Release("a", "req_1")
	require.NoError(t, err)
	require.NoError(t, <-done)
	_, err = d.Release("a", "req_2")
	require.NoError(t, err)
}

// Of all that take a lock at once one gets it, and of all that steal a stale one as well. While they do,
// nobody sees anything but whole locks.
func TestTower42AcquisitionIsAtomic(t *testing.T) {
	const requests, rounds = 16, 8
	d, c := newDir(t)
	looking, stop := context.WithCancel(t.Context())
	looked := make(chan error, 1)
	go func() {
		for looking.Err() == nil {
			if _, _, err := d.Read("a"); err != nil && !errors.Is(err, fs.ErrNotExist) {
				looked <- err
				return
			}
		}
		looked <- nil
	}()
	race := func(force bool) {
		var won atomic.Int32
		var all sync.WaitGroup
		for i := range requests {
			l := request(t, "a", fmt.Sprintf("req_%d", i))
			all.Go(func() {
				_, err := d.Acquire(l, force)
				if err == nil {
					won.Add(1)
				} else if !tower.Blocks(err) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		require.EqualValues(t, 1, won.Load())
	}
	for range rounds {
		race(false)
		c.add(901 * time.Second)
		race(true)
		held, _, err := d.Read("a")
		require.NoError(t, err)
		_, err = d.Release("a", held.RequestID)
		require.NoError(t, err)
	}
	stop()
	require.NoError(t, <-looked)
	requireOnly(t, d)
}

// The holder of a lock that looks stale renews it while others steal it: either it was renewed, and
// nobody has stolen it, or one has, and it learns so.
func TestHeartbeatAgainstSteal(t *testing.T) {
	d, c := newDir(t)
	for range 20 {
		_ = os.Remove(d.LockPath("a"))
		take(t, d, "a", "holder")
		c.add(901 * time.Second)
		var renewed, stolen error
		var both sync.WaitGroup
		both.Go(func() { _, renewed = d.Heartbeat("a", "holder") })
		both.Go(func() { _, stolen = d.Acquire(request(t, "a", "thief"), true) })
		both.Wait()
		require.NotEqual(t, renewed == nil, stolen == nil, "%v, %v", renewed, stolen)
	}
}

func TestTower54KeepGoesOnAfterFailures(t *testing.T) {
	d, c := newDir(t)
	taken := take(t, d, "a", "req_1")
	calls := 0
	failing := d.Failing(nil, func(from, to string) error {
		if calls++; calls == 4 {
			return os.Rename(from, to)
		}
		return syscall.ENOSPC
	}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c.add(time.Hour) // stale, and still its own
	counts := []int{}
	require.NoError(t, failing.Keep(ctx, taken.Lock, time.Now(), time.Millisecond, func(failures int, err error) {
		require.ErrorIs(t, err, syscall.ENOSPC)
		if counts = append(counts, failures); len(counts) == 5 {
			cancel()
		}
	}))
	require.Equal(t, []int{1, 2, 3, 1, 2}, counts[:5])
}

func TestKeepEndsWhenTheLockIsLost(t *testing.T) {
	d, c := newDir(t)
	never := func(int, error) { t.Error("it is no failure") }
	taken := take(t, d, "a", "req_1")
	require.NoError(t, os.Remove(taken.Path))
	take(t, d, "a", "req_2")
	var lost *tower.LostError
	require.ErrorAs(t, d.Keep(t.Context(), taken.Lock, time.Now(), time.Millisecond, never), &lost)
	require.Equal(t, "req_2", lost.Lock.RequestID)

	// Nor does that take a heartbeat.
	taken = take(t, d, "c", "req_1")
	kept := make(chan error, 1)
	go func() { kept <- d.Keep(t.Context(), taken.Lock, time.Now(), time.Hour, never) }()
	require.NoError(t, os.Remove(taken.Path))
	require.ErrorAs(t, <-kept, &lost)
	require.ErrorContains(t, lost, "there is none")

	// A data file has the name.
	taken = take(t, d, "c", "req_1")
	var file tower.LockFile
	file.Note(taken.File)
	require.NoError(t, os.WriteFile(taken.Path+".data", []byte("data"), 0o600))
	require.NoError(t, os.Rename(taken.Path+".data", taken.Path))
	require.True(t, file.Replaced(taken.Path))
	require.ErrorAs(t, d.KeepFile(t.Context(), taken.Lock, time.Now(), time.Millisecond, never, &file), &lost)
	require.ErrorContains(t, lost, "is not a valid lock any more")

	// It cannot be read, and after its ttl another request may have stolen it.
	taken = take(t, d, "b", "req_1")
	require.NoError(t, os.Rename(d.Path, d.Path+".away"))
	require.NoError(t, os.WriteFile(d.Path, nil, 0o600))
	failures := 0
	err := d.Keep(t.Context(), taken.Lock, time.Now(), time.Millisecond, func(n int, _ error) {
		if failures = n; n == 3 {
			c.add(901 * time.Second)
		}
	})
	require.ErrorAs(t, err, &lost)
	require.ErrorContains(t, err, "longer than its ttl")
	require.Equal(t, 3, failures)
}

// TestKeepCountsFromWhenTheLockWasAskedFor: though the clock of the lock's times was set back since.
func TestKeepCountsFromWhenTheLockWasAskedFor(t *testing.T) {
	d, c := newDir(t)
	taken := take(t, d, "a", "req_1")
	c.add(-time.Hour)
	require.NoError(t, os.WriteFile(taken.Path, []byte("{"), 0o600))
	asked := time.Now().Add(-time.Duration(taken.Lock.TTLSeconds) * time.Second)
	var lost *tower.LostError
	never := func(int, error) { t.Error("it is no failure") }
	require.ErrorAs(t, d.Keep(t.Context(), taken.Lock, asked, time.Millisecond, never), &lost)
}

func TestAuditLogAppendsLines(t *testing.T) {
	log := tower.AuditLog{Path: filepath.Join(t.TempDir(), "audit.jsonl")}
	require.NoError(t, log.Check())
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			l := request(t, "a", fmt.Sprintf("req_%d", i))
			if err := log.Append(l.Acquired("/x/<&>.lock", at("10:00:00"))); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	content, err := os.ReadFile(log.Path)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
	require.Len(t, lines, 20)
	for _, line := range lines {
		var event tower.Acquired
		require.NoError(t, json.Unmarshal([]byte(line), &event))
		require.Contains(t, line, "<&>")
	}
	require.Error(t, tower.AuditLog{Path: t.TempDir()}.Check())
	require.Error(t, tower.AuditLog{Path: t.TempDir()}.Append(1))
	require.Error(t, log.Append(func() {}))
}
