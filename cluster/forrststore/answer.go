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

// leastKept is the least time to keep an answer, for waiting attempts.
const leastKept = time.Minute

// Record implements [forrst.Store]. It does not replace an answer recorded under this lock or a later one:
// callers may have received that answer.
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

// reply is the recorded answer to a request.
type reply struct {
	file   ids.Token // token of its file; 0: none
	lock   ids.Token // token of the request's lock at the time
	at     time.Time
	answer []byte // nil: none
}

// reply returns the last recorded answer. It ignores invalid files.
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
