package keylock

import (
	"context"
	"syscall"
	"time"

	"lockfs/formats/forrst"
	"lockfs/formats/lockfact"
	"lockfs/raftstore"
	"lockfs/raftstore/storepb"
)

// answerAge is for how long an answer is kept at least.
const answerAge = 10 * time.Minute

// Record is part of [forrst.Store]. An answer that is there stays: it is what others were told.
func (s *Store) Record(ctx context.Context, grant *forrst.Grant, answer []byte) error {
	expires := s.Now().Add(answerAge)
	if grant.Lock.ExpiresAt.After(expires) {
		expires = grant.Lock.ExpiresAt // or an attempt would wait for a lock that nobody works under
	}
	facts := lockfact.Facts{
		Format: lockfact.Forrst, Holder: grant.Request.ID, Host: s.host, ExpiresAt: lockfact.Origin{}.Deadline(expires),
		Guard: lockfact.GuardOwner, OnStale: lockfact.Remove,
	}
	result, err := s.make(ctx, repliesDir, &storepb.Create{
		Name: []byte(grant.Request.Sum), Mode: syscall.S_IFREG | 0o600, Content: answer, Facts: raftstore.FactsMessage(facts), Unlisted: true,
	})
	if err == nil && result.GetCode() != storepb.Code_OK && result.GetCode() != storepb.Code_EXISTS {
		err = refused("the answer to "+grant.Request.ID, result)
	}
	return err
}

// answer is what a request was answered, nil if it was not.
func (s *Store) answer(ctx context.Context, request forrst.Identity) ([]byte, error) {
	at, err := s.where(ctx)
	if err != nil {
		return nil, err
	}
	query := &storepb.GetLock{Parent: at.replies, Name: []byte(request.Sum)}
	result, err := s.client.Query(ctx, &storepb.Query{Query: &storepb.Query_GetLock{GetLock: query}})
	switch {
	case err != nil:
		return nil, err
	case result.GetCode() == storepb.Code_NOT_FOUND:
		return nil, nil
	case result.GetCode() != storepb.Code_OK:
		return nil, refused("the answer to "+request.ID, result)
	}
	return result.GetLocks()[0].GetContent(), nil
}
