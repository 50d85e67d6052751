package forrststore

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"syscall"
	"time"

	"lockfs/formats/forrst"
	"lockfs/formats/lockfact"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// leastKept is for how long an answer is there at least, for attempts that wait for it.
const leastKept = time.Minute

// Record is part of [forrst.Store]. An answer that was recorded under this lock or a later one stays: it is what others
// were told.
func (s *Store) Record(ctx context.Context, grant *forrst.Grant, answer []byte, keep time.Duration) error {
	expires := s.Now().Add(max(keep, leastKept))
	facts := lockfact.Facts{
		Format: lockfact.Forrst, Holder: grant.Request.ID, Host: s.host, ExpiresAt: lockfact.Origin{}.Deadline(expires),
		Guard: lockfact.GuardOwner, OnStale: lockfact.Remove,
	}
	content := append(fmt.Appendf(nil, "%d\n", grant.Token), answer...)
	for {
		result, err := s.make(ctx, repliesDir, &storepb.Create{
			Name: []byte(grant.Request.Sum), Mode: syscall.S_IFREG | 0o600, Content: content, Facts: namespace.FactsMessage(facts), Unlisted: true,
		})
		switch {
		case err != nil || result.GetCode() == storepb.Code_OK:
			return err
		case result.GetCode() != storepb.Code_EXISTS:
			return refused("the answer to "+grant.Request.ID, result)
		}
		there, err := s.reply(ctx, grant.Request)
		if err != nil || there.lock >= ids.Token(grant.Token) {
			return err
		}
		if err := s.forget(ctx, grant.Request, there); err != nil {
			return err
		}
	}
}

// reply is what a request was answered.
type reply struct {
	file   ids.Token // token of its file; 0: there is none
	lock   ids.Token // token of the lock under which it was recorded
	at     time.Time
	answer []byte // nil: there is none
}

// reply answers the one that was recorded last. A file that is none counts for nothing.
func (s *Store) reply(ctx context.Context, request forrst.Identity) (reply, error) {
	at, err := s.where(ctx)
	if err != nil {
		return reply{}, err
	}
	query := &storepb.GetLock{Parent: uint64(at.replies), Name: []byte(request.Sum)}
	result, err := s.client.Query(ctx, &storepb.Query{Query: &storepb.Query_GetLock{GetLock: query}})
	switch {
	case err != nil:
		return reply{}, err
	case result.GetCode() == storepb.Code_NOT_FOUND:
		return reply{}, nil
	case result.GetCode() != storepb.Code_OK:
		return reply{}, refused("the answer to "+request.ID, result)
	}
	there := result.GetLocks()[0]
	r := reply{file: ids.Token(there.GetToken()), at: time.Unix(0, there.GetAcquired())}
	token, answer, _ := bytes.Cut(there.GetContent(), []byte("\n"))
	lock, err := strconv.ParseUint(string(token), 10, 64)
	if r.lock = ids.Token(lock); err == nil {
		r.answer = answer
	}
	return r, nil
}

// forget removes a reply, unless another one is there by now.
func (s *Store) forget(ctx context.Context, request forrst.Identity, r reply) error {
	at, err := s.where(ctx)
	if err != nil {
		return err
	}
	op := &storepb.Unlink{Parent: uint64(at.replies), Name: []byte(request.Sum), Owner: request.ID}
	op.Observations = []*storepb.Observation{{Parent: op.Parent, Name: op.Name, Token: uint64(r.file)}}
	result, err := s.mutate(ctx, &storepb.Op{Op: &storepb.Op_Unlink{Unlink: op}})
	if err == nil && result.GetCode() != storepb.Code_OK && result.GetCode() != storepb.Code_NOT_FOUND {
		err = refused("the answer to "+request.ID, result)
	}
	return err
}
