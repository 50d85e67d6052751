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

// attempt is a request on its way to a lock, and what it has seen of other attempts of it.
type attempt struct {
	*Store
	want  forrst.Want
	seen  reply     // that was there last
	first ids.Token // token of the lock under which another attempt was under way; 0: none
	ends  time.Time // when that lock expires
}

// awaitFirst answers what another attempt was answered, and waits for that while it has the lock: whoever is in line
// is no reason for this one to wait. Nil: there is none.
func (a *attempt) awaitFirst(ctx context.Context) (*forrst.Grant, error) {
	for a.want.Once {
		there, own, err := a.holder(ctx) // and then the answer, which its lock may not outlive
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

// answer is what another attempt was answered, nil if there was none or its outcome does not stand any more.
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

// stands tells whether this is still what the request comes to.
func (a *attempt) stands(ctx context.Context, r reply) (bool, error) {
	now := a.Now()
	switch {
	case now.Before(r.at.Add(a.want.Within)):
		return true, nil
	case r.lock == a.first && (a.want.Within > 0 || now.Before(a.ends)): // it has just been given
		return true, nil
	}
	_, own, err := a.holder(ctx)
	return own && a.first == r.lock && now.Before(a.ends), err
}

// holder answers who has the lock, nil for nobody, and whether that is another attempt that counts.
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

// awaitChange returns once a lock is not there any more, or another reply is than was seen.
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
		case err != nil: // it may have come at once
			_ = pause.For(ctx, retryPause)
		case result.GetCode() != storepb.Code_WAITING:
			return nil
		default:
			a.awaitNews(ctx, change.GetSeen(), ids.Index(result.GetIndex()))
		}
	}
	return ctx.Err()
}

// awaitNews returns once one of two names may have changed since a command, or ctx has ended.
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
