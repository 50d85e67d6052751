package forrststore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lockfs/formats/forrst"
	"lockfs/formats/lockfact"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Drop implements [forrst.Store].
func (s *Store) Drop(ctx context.Context, grant *forrst.Grant) error {
	result, err := s.remove(ctx, grant.Lock.Key, &storepb.Unlink{Owner: holder(grant.Lock.Owner), Request: grant.Request.String()}, ids.Token(grant.Token))
	if err == nil && result.GetCode() != storepb.Code_OK && result.GetCode() != storepb.Code_NOT_FOUND {
		err = refused(grant.Lock.Key, result)
	}
	return err
}

// abandon drops a lock without an informed request, unless it expires first.
func (s *Store) abandon(grant *forrst.Grant) {
	for s.Now().Before(grant.Lock.ExpiresAt) {
		if err := s.Drop(context.Background(), grant); !errors.Is(err, context.DeadlineExceeded) {
			return // done, or the client is closed
		}
		time.Sleep(retryPause)
	}
}

// Release implements [forrst.Store].
func (s *Store) Release(ctx context.Context, key, owner string, by forrst.Identity, within time.Duration) (again bool, err error) {
	for {
		there, _, err := s.find(ctx, key)
		if err != nil {
			return false, err
		}
		if there.GetState() == string(lockfact.Stale) {
			there = nil
		}
		if there.GetFacts().GetHolder() != holder(owner) {
			err := s.whyNot(ctx, key, owner, by, within, there != nil)
			return err == nil, err
		}
		result, err := s.remove(ctx, key, &storepb.Unlink{Owner: holder(owner), Request: by.String()}, ids.Token(there.GetToken()))
		if err != nil {
			return false, err
		}
		switch result.GetCode() {
		case storepb.Code_OK:
			return false, nil
		case storepb.Code_NOT_FOUND: // it has just ended
		default:
			return false, refused(key, result)
		}
	}
}

// whyNot returns the reason for a missing lock of an owner, from the cluster's events. It returns nil if this
// request has released it.
func (s *Store) whyNot(ctx context.Context, key, owner string, by forrst.Identity, within time.Duration, held bool) error {
	last, err := s.lastEvent(ctx, key, func(e *storepb.Event) bool { return e.GetHolder() == holder(owner) })
	switch {
	case err != nil:
		return err
	case isRelease(last) && s.wasDone(last, by, within):
		return nil
	case held:
		return forrst.ErrNotOwner
	case isRelease(last):
		return forrst.ErrReleased
	}
	return forrst.ErrNotFound
}

// isRelease reports whether an owner or an administrator ended a lock, not its expiry.
func isRelease(e *storepb.Event) bool {
	return e.GetEvent() == "lock_released" || e.GetEvent() == "lock_removed" && e.GetBy() != nil
}

// wasDone reports whether a release event belongs to this request.
func (s *Store) wasDone(e *storepb.Event, by forrst.Identity, within time.Duration) bool {
	return e.GetRequest() == by.String() && s.Now().Before(time.Unix(0, e.GetTime()).Add(within))
}

// ForceRelease implements [forrst.Store].
func (s *Store) ForceRelease(ctx context.Context, key string, by forrst.Identity, within time.Duration) (again bool, err error) {
	result, err := s.remove(ctx, key, &storepb.Unlink{Force: true, Request: by.String()}, 0)
	switch {
	case err != nil:
		return false, err
	case result.GetCode() == storepb.Code_OK:
		return false, nil
	case result.GetCode() != storepb.Code_NOT_FOUND:
		return false, refused(key, result)
	}
	last, err := s.lastEvent(ctx, key, isRelease)
	switch {
	case err != nil:
		return false, err
	case s.wasDone(last, by, within):
		return true, nil
	}
	return false, forrst.ErrNotFound
}

// remove removes a lock's file; with a token, only this lock.
func (s *Store) remove(ctx context.Context, key string, op *storepb.Unlink, token ids.Token) (*storepb.Result, error) {
	name, err := forrst.FileName(key)
	if err != nil {
		return nil, err
	}
	at, err := s.where(ctx)
	if err != nil {
		return nil, err
	}
	op.Parent, op.Name = uint64(at.locks), []byte(name)
	if token != 0 {
		op.Observations = []*storepb.Observation{{Parent: op.Parent, Name: op.Name, Token: uint64(token)}}
	}
	return s.mutate(ctx, &storepb.Op{Op: &storepb.Op_Unlink{Unlink: op}})
}

// Lock implements [forrst.Store].
func (s *Store) Lock(ctx context.Context, key string) (*forrst.Lock, error) {
	there, lock, err := s.find(ctx, key)
	if there != nil && lock == nil {
		err = fmt.Errorf("%s is not a lock of this protocol: remove it", there.GetPath())
	}
	return lock, err
}

// find returns the file of a key, with its content if that is valid; nil: none.
func (s *Store) find(ctx context.Context, key string) (*storepb.Lock, *forrst.Lock, error) {
	name, err := forrst.FileName(key)
	if err != nil {
		return nil, nil, err
	}
	at, err := s.where(ctx)
	if err != nil {
		return nil, nil, err
	}
	query := &storepb.GetLock{Parent: uint64(at.locks), Name: []byte(name)}
	result, err := s.client.Query(ctx, &storepb.Query{Query: &storepb.Query_GetLock{GetLock: query}})
	switch {
	case err != nil:
		return nil, nil, err
	case result.GetCode() == storepb.Code_NOT_FOUND:
		return nil, nil, nil
	case result.GetCode() != storepb.Code_OK:
		return nil, nil, refused(key, result)
	}
	there := result.GetLocks()[0]
	lock, _ := forrst.Parse(there.GetContent())
	return there, lock, nil
}

// lastEvent returns the last stored event of a key and a kind; nil: none.
func (s *Store) lastEvent(ctx context.Context, key string, is func(*storepb.Event) bool) (*storepb.Event, error) {
	name, err := forrst.FileName(key)
	if err != nil {
		return nil, err
	}
	var last *storepb.Event
	query := &storepb.ListEvents{Path: []byte(dirName + "/" + name), Viewer: &storepb.Viewer{}} // root
	for {
		result, err := s.client.Query(ctx, &storepb.Query{Query: &storepb.Query_ListEvents{ListEvents: query}})
		if err != nil {
			return nil, err
		}
		events := result.GetEvents()
		if len(events) == 0 {
			return last, nil
		}
		for _, e := range events {
			if is(e) {
				last = e
			}
		}
		query.After = events[len(events)-1].GetNumber()
	}
}

func holder(owner string) string { return lockfact.HolderName(owner) }
