package tower

import (
	"errors"
	"io/fs"
	"os"
	"sync/atomic"
)

// LockFile records the file in which a request's lock was last read or written.
type LockFile struct{ info atomic.Pointer[fs.FileInfo] }

// Note records a file with the request's lock; nil changes nothing.
func (f *LockFile) Note(info fs.FileInfo) {
	if info != nil {
		f.info.Store(&info)
	}
}

// Replaced reports whether the name has another file now.
func (f *LockFile) Replaced(path string) bool {
	last := f.info.Load()
	now, err := os.Lstat(path)
	return err == nil && last != nil && !os.SameFile(now, *last)
}

// lost turns an [InvalidError] of another file into a [LostError]. A content that another program is writing
// may be invalid for a moment.
func (f *LockFile) lost(path string, l *Lock, err error) error {
	var invalid *InvalidError
	if !errors.As(err, &invalid) || !f.Replaced(path) {
		return err
	}
	return &LostError{LockName: l.LockName, RequestID: l.RequestID, Err: err}
}

// Heartbeat renews the lock of a request (section 5.3) and returns it. The new file differs only in
// last_heartbeat_at and has the old mode. A [LostError] means that the request does not hold the lock; other
// failures may pass.
func (d Dir) Heartbeat(lockName, requestID string) (*Lock, error) {
	return d.HeartbeatFile(lockName, requestID, new(LockFile))
}

// HeartbeatFile is Heartbeat, and records the file.
func (d Dir) HeartbeatFile(lockName, requestID string, file *LockFile) (*Lock, error) {
	var renewed *Lock
	err := untilSettled(d.LockPath(lockName), func() (err error) {
		renewed, err = d.heartbeat(lockName, requestID, file)
		return err
	})
	if err != nil {
		return nil, d.lostOr(err, lockName, requestID)
	}
	return renewed, nil
}

func (d Dir) heartbeat(lockName, requestID string, file *LockFile) (*Lock, error) {
	current, content, read, err := d.own(lockName, requestID)
	if err != nil {
		return nil, err
	}
	file.Note(read)
	path := d.LockPath(lockName)
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errChanged
	} else if err != nil {
		return nil, err
	}
	now := d.Now()
	text, err := Heartbeat(content, now)
	if err != nil {
		return nil, err
	}
	temp, err := d.writeTemp(lockName, text, info.Mode().Perm())
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(temp) }() // after the rename it does not exist
	if err := os.Chmod(temp, info.Mode().Perm()); err != nil {
		return nil, err
	}
	written, err := os.Lstat(temp)
	if err != nil {
		return nil, err
	}
	if err := d.unchanged(lockName, content, func() error { return d.rename(temp, path) }); err != nil {
		return nil, err
	}
	file.Note(written)
	renewed, err := Parse(text)
	if err != nil {
		return nil, err
	}
	current.LastHeartbeatAt = renewed.LastHeartbeatAt
	return current, nil
}

// own returns the lock of the request and its file.
func (d Dir) own(lockName, requestID string) (*Lock, []byte, fs.FileInfo, error) {
	if err := ValidateRequestID(requestID); err != nil {
		return nil, nil, nil, err
	}
	l, content, file, err := d.read(lockName)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, gone := os.Stat(d.Path); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			return nil, nil, nil, gone
		}
		return nil, nil, nil, &LostError{LockName: lockName, RequestID: requestID}
	case err != nil:
		return nil, nil, nil, err
	case l.RequestID != requestID:
		return nil, nil, nil, &LostError{LockName: lockName, RequestID: requestID, Lock: l}
	}
	return l, content, file, nil
}

// lostOr returns a [LostError] if another request's lock caused the refusal, and err if not.
func (d Dir) lostOr(err error, lockName, requestID string) error {
	var lost *LostError
	if errors.As(err, &lost) {
		return err
	}
	if _, _, _, now := d.own(lockName, requestID); errors.As(now, &lost) {
		return lost
	}
	return err
}

// Release removes the lock of a request (section 8.1) and returns it. A [LostError] without a Lock means that
// there is none. After any other error the lock still exists: see [Lock.ReleaseFailed].
func (d Dir) Release(lockName, requestID string) (*Lock, error) {
	var released *Lock
	path := d.LockPath(lockName)
	err := untilSettled(path, func() error {
		current, content, _, err := d.own(lockName, requestID)
		if err != nil {
			return err
		}
		released = current
		return d.unchanged(lockName, content, func() error { return d.remove(path) })
	})
	if err != nil {
		return released, d.lostOr(err, lockName, requestID)
	}
	return released, nil
}
