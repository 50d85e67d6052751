package forrststore

import (
	"context"
	"time"

	"lockfs/formats/forrst"
	"lockfs/formats/lockfact"
	"lockfs/formats/pause"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// attempt is one attempt of a request, with its knowledge of other attempts.
type attempt struct {
	*Store
	want  forrst.Want
	seen  reply     // last known reply
	first ids.Token // token of another attempt's lock; 0: none
	ends  time.Time // expiry of that lock
}

// awaitFirst returns the answer of another attempt, and waits for it while the other attempt has the lock. It
// does not wait in line. It returns nil if there is no other attempt.
func (a *attempt) awaitFirst(ctx context.Context) (*forrst.Grant, error) {
	for a.want.Once {
		there, own, err := a.holder(ctx) // before the answer: the answer may outlive the lock
		if err != nil {
			return nil, err
		}
		if grant, err := a.answer(ctx); grant != nil || !own || err != nil {
			return grant, err
		}
		if err := a.awaitChange(ctx, there); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// answer returns the answer of another attempt; nil: none, or its outcome is no longer valid.
func (a *attempt) answer(ctx context.Context) (*forrst.Grant, error) {
	if !a.want.Once {
		return nil, nil
	}
	var err error
	if a.seen, err = a.reply(ctx, a.want.Request); err != nil || a.seen.answer == nil {
		return nil, err
	}
	stands, err := a.stands(ctx, a.seen)
	if err != nil || !stands {
		return nil, err
	}
	return &forrst.Grant{Request: a.want.Request, Answer: a.seen.answer}, nil
}

// stands reports whether a reply is still the outcome of the request.
func (a *attempt) stands(ctx context.Context, r reply) (bool, error) {
	now := a.Now()
	switch {
	case now.Before(r.at.Add(a.want.Within)):
		return true, nil
	case r.lock == a.first && (a.want.Within > 0 || now.Before(a.ends)): // a recent answer
		return true, nil
	}
	_, own, err := a.holder(ctx)
	return own && a.first == r.lock && now.Before(a.ends), err
}

// holder returns the current lock (nil: none), and whether it belongs to another valid attempt.
func (a *attempt) holder(ctx context.Context) (there *storepb.Lock, own bool, err error) {
	there, lock, err := a.find(ctx, a.want.Key)
	if err != nil || there == nil || lock == nil || !a.want.Once || lock.Request != a.want.Request.String() {
		return there, false, err
	}
	if there.GetState() == string(lockfact.Stale) {
		return there, false, nil
	}
	a.first, a.ends = ids.Token(there.GetToken()), lock.ExpiresAt
	return there, true, nil
}

// awaitChange waits until a lock ends or the reply changes.
func (a *attempt) awaitChange(ctx context.Context, there *storepb.Lock) error {
	at, err := a.where(ctx)
	if err != nil {
		return err
	}
	change := &storepb.TestChange{Seen: []*storepb.Observation{
		{Parent: there.GetParent(), Name: there.GetName(), Token: there.GetToken()},
		{Parent: uint64(at.replies), Name: []byte(a.want.Request.Sum), Token: uint64(a.seen.file)},
	}}
	for ctx.Err() == nil {
		result, err := a.client.Query(ctx, &storepb.Query{Query: &storepb.Query_TestChange{TestChange: change}})
		switch {
		case err != nil: // it may fail at once
			_ = pause.For(ctx, retryPause)
		case result.GetCode() != storepb.Code_WAITING:
			return nil
		default:
			a.awaitNews(ctx, change.GetSeen(), ids.Index(result.GetIndex()))
		}
	}
	return ctx.Err()
}

// awaitNews waits until one of two names may have changed since a command, or ctx ends.
func (a *attempt) awaitNews(ctx context.Context, names []*storepb.Observation, since ids.Index) {
	first, endFirst := a.client.NameChanged(names[0], since)
	defer endFirst()
	second, endSecond := a.client.NameChanged(names[1], since)
	defer endSecond()
	select {
	case <-first:
	case <-second:
	case <-ctx.Done():
	}
}
