package forrst_test

import (
	"context"
	"slices"
	"sync"
	"time"

	"lockfs/formats/forrst"
)

var _ forrst.Store = (*memory)(nil)

// memory is a store in this process, with a clock that stands until it is moved.
type memory struct {
	mu       sync.Mutex
	now      time.Time
	locks    map[string]*forrst.Lock
	replies  map[forrst.Identity]reply
	released map[string]release // by key and owner
	forced   map[string]release // by key
	lines    map[string][]*forrst.Want
	changed  chan struct{} // closed at each change
	down     error         // what every method answers
	full     error         // what Record answers
	kept     time.Duration // how long the last answer is kept
	calls    []string      // what was done, in order
	token    uint64

	after func(time.Duration) <-chan time.Time // how patience ends
}

// reply is what a request was answered.
type reply struct {
	answer []byte
	under  *forrst.Lock
	at     time.Time
}

// release is what ended a lock.
type release struct {
	by forrst.Identity
	at time.Time
}

func newMemory() *memory {
	return &memory{
		now: now, locks: map[string]*forrst.Lock{}, replies: map[forrst.Identity]reply{}, released: map[string]release{},
		forced: map[string]release{}, lines: map[string][]*forrst.Want{}, changed: make(chan struct{}), after: time.After,
	}
}

// change does something and wakes those who wait.
func (m *memory) change(do func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down != nil {
		return m.down
	}
	defer func() {
		close(m.changed)
		m.changed = make(chan struct{})
	}()
	return do()
}

func (m *memory) setDown(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = err
}

// await returns once something holds.
func (m *memory) await(ctx context.Context, holds func() bool) error {
	for {
		m.mu.Lock()
		done, changed := holds(), m.changed
		m.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (m *memory) advance(d time.Duration) {
	_ = m.change(func() error {
		m.now = m.now.Add(d)
		return nil
	})
}

func (m *memory) held(key string) *forrst.Lock {
	if lock := m.locks[key]; lock != nil && !lock.Expired(m.now) {
		return lock
	}
	return nil
}

func (m *memory) Acquire(ctx context.Context, want forrst.Want) (*forrst.Grant, error) {
	ticket := &want
	if want.Wait > 0 {
		_ = m.change(func() error {
			m.lines[want.Key] = append(m.lines[want.Key], ticket)
			return nil
		})
		defer func() {
			_ = m.change(func() error {
				m.lines[want.Key] = slices.DeleteFunc(m.lines[want.Key], func(w *forrst.Want) bool { return w == ticket })
				return nil
			})
		}()
	}
	patience := m.after(want.Wait)
	var first *forrst.Lock // of another attempt that was under way
	for {
		m.mu.Lock()
		own := m.held(want.Key)
		if own != nil && (!want.Once || own.Request != want.Request.String()) {
			own = nil
		}
		if own != nil {
			first = own
		}
		grant := m.try(want, ticket, first)
		err, changed := m.down, m.changed
		m.mu.Unlock()
		switch {
		case err != nil:
			return nil, err
		case grant != nil:
			return grant, nil
		case own != nil:
			patience = nil
		case want.Wait <= 0:
			return nil, forrst.ErrHeld
		}
		select {
		case <-changed:
		case <-patience:
			return nil, forrst.ErrHeld
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (m *memory) try(want forrst.Want, ticket *forrst.Want, first *forrst.Lock) *forrst.Grant {
	r, answered := m.replies[want.Request]
	if answered && want.Once && (r.under == first || r.under == m.held(want.Key) || m.now.Before(r.at.Add(want.Within))) {
		return &forrst.Grant{Answer: r.answer}
	}
	line := m.lines[want.Key]
	if m.down != nil || m.held(want.Key) != nil || want.Wait > 0 && line[0] != ticket {
		return nil
	}
	lock := &forrst.Lock{
		URN: forrst.URN, Key: want.Key, Owner: want.Owner, AcquiredAt: m.now, ExpiresAt: m.now.Add(want.TTL),
		Request: want.Request.String(),
	}
	m.locks[want.Key] = lock
	m.token++
	m.calls = append(m.calls, "acquire")
	close(m.changed)
	m.changed = make(chan struct{})
	return &forrst.Grant{Request: want.Request, Lock: lock, Token: m.token}
}

func (m *memory) Record(_ context.Context, grant *forrst.Grant, answer []byte, keep time.Duration) error {
	return m.change(func() error {
		if m.full != nil {
			return m.full
		}
		m.kept = keep
		m.replies[grant.Request] = reply{answer, grant.Lock, m.now}
		m.calls = append(m.calls, "record")
		return nil
	})
}

func (m *memory) Drop(_ context.Context, grant *forrst.Grant) error {
	return m.change(func() error {
		m.calls = append(m.calls, "drop")
		if m.locks[grant.Lock.Key] == grant.Lock {
			delete(m.locks, grant.Lock.Key)
			m.released[grant.Lock.Key+grant.Lock.Owner] = release{grant.Request, m.now}
		}
		return nil
	})
}

func (m *memory) Release(_ context.Context, key, owner string, by forrst.Identity, within time.Duration) (again bool, err error) {
	err = m.change(func() error {
		lock := m.held(key)
		before, wasReleased := m.released[key+owner]
		switch {
		case lock != nil && lock.Owner == owner:
			delete(m.locks, key)
			m.released[key+owner] = release{by, m.now}
		case wasReleased && before.by == by && m.now.Before(before.at.Add(within)):
			again = true
		case lock != nil:
			return forrst.ErrNotOwner
		case wasReleased:
			return forrst.ErrReleased
		default:
			return forrst.ErrNotFound
		}
		return nil
	})
	return again, err
}

func (m *memory) ForceRelease(_ context.Context, key string, by forrst.Identity, within time.Duration) (again bool, err error) {
	err = m.change(func() error {
		before := m.forced[key]
		switch {
		case m.held(key) != nil:
			delete(m.locks, key)
			m.forced[key] = release{by, m.now}
		case before.by == by && m.now.Before(before.at.Add(within)):
			again = true
		default:
			return forrst.ErrNotFound
		}
		return nil
	})
	return again, err
}

func (m *memory) Lock(_ context.Context, key string) (lock *forrst.Lock, err error) {
	err = m.change(func() error {
		lock = m.held(key)
		return nil
	})
	return lock, err
}

func (m *memory) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}
