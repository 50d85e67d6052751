package forrststore

import (
	"context"
	"syscall"
	"time"

	"lockfs/formats/forrst"
	"lockfs/formats/lockfact"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// Acquire implements [forrst.Store].
func (s *Store) Acquire(ctx context.Context, want forrst.Want) (*forrst.Grant, error) {
	a := &attempt{Store: s, want: want}
	if grant, err := a.awaitFirst(ctx); grant != nil || err != nil {
		return grant, err
	}
	patience, cancel := context.WithTimeout(ctx, want.Wait)
	defer cancel()
	if want.Wait > 0 {
		leave, err := s.standInLine(patience, want.Key)
		if err != nil {
			return nil, outOfPatience(ctx, patience, err)
		}
		defer leave()
	}
	for {
		grant, err := a.try(ctx)
		if grant != nil || err != nil {
			return grant, err
		}
		if err := a.awaitTurn(ctx, patience); err != nil {
			return nil, outOfPatience(ctx, patience, err)
		}
	}
}

// outOfPatience returns the error for a request with an expired wait, if this caused err.
func outOfPatience(ctx, patience context.Context, err error) error {
	if ctx.Err() == nil && patience.Err() != nil {
		return forrst.ErrHeld
	}
	return err
}

// try returns the answer of another attempt, or the lock if it is free, else nil.
func (a *attempt) try(ctx context.Context) (*forrst.Grant, error) {
	if answer, err := a.answer(ctx); answer != nil || err != nil {
		return answer, err
	}
	grant, err := a.create(ctx, a.want)
	if grant == nil || err != nil {
		return nil, err
	}
	// Another attempt may have been answered and its lock dropped since.
	answer, err := a.answer(ctx)
	if answer == nil && err == nil {
		return grant, nil
	}
	go a.abandon(grant)
	return answer, err
}

// create creates the lock's file; it returns nil if there is one. The lock's time begins before the creation,
// so a slow creation may return an expired lock.
func (s *Store) create(ctx context.Context, want forrst.Want) (*forrst.Grant, error) {
	now := s.Now().Truncate(time.Millisecond)
	lock := &forrst.Lock{
		URN: forrst.URN, Key: want.Key, Owner: want.Owner, AcquiredAt: now, ExpiresAt: now.Add(want.TTL),
		Request: want.Request.String(),
	}
	content, err := lock.Render()
	if err != nil {
		return nil, err
	}
	facts, err := forrst.FactsOf(content, lockfact.Origin{Host: s.host})
	if err != nil {
		return nil, err
	}
	name, err := forrst.FileName(want.Key)
	if err != nil {
		return nil, err
	}
	result, err := s.make(ctx, locksDir, &storepb.Create{
		Name: []byte(name), Mode: syscall.S_IFREG | 0o644, Content: content, Facts: namespace.FactsMessage(facts),
	})
	switch {
	case err != nil:
		return nil, err
	case result.GetCode() == storepb.Code_EXISTS:
		return nil, nil
	case result.GetCode() != storepb.Code_OK:
		return nil, refused(want.Key, result)
	}
	return &forrst.Grant{Request: want.Request, Lock: lock, Token: result.GetObservations()[0].GetToken()}, nil
}

// awaitTurn waits until the current lock ends or another attempt has an answer. If another attempt has the
// lock, it waits for its answer beyond the request's own limit.
func (a *attempt) awaitTurn(ctx, patience context.Context) error {
	there, own, err := a.holder(ctx)
	if there == nil || err != nil {
		return err
	}
	if own {
		patience = ctx
	}
	return a.awaitChange(patience, there)
}
