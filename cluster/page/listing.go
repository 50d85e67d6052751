package page

import (
	"context"
	"fmt"
	"sync"
	"time"

	"lockfs/cluster/rpc"
	"lockfs/raftstore/storepb"
)

// listing is all locks visible to one user, at one command of the state. It is read-only.
type listing struct {
	index uint64
	now   moment // approximate cluster time
	locks []Lock
	full  map[string]*storepb.Lock // by path
}

const (
	// listPause is the least time between two checks for changes of the state, for one user.
	listPause = 200 * time.Millisecond
	// listShare limits the share of time for listing: a longer list is updated less often.
	listShare = 5
	// mostListings limits the users with cached lists.
	mostListings = 64
)

// listings caches the lists of users, for all of their pages.
type listings struct {
	ask asker

	mu sync.Mutex
	of map[string]*userListing
}

type userListing struct {
	used time.Time // guarded by listings.mu

	mu    sync.Mutex
	last  *listing
	asked time.Time
	took  time.Duration
}

func newListings(ask asker) *listings { return &listings{ask: ask, of: make(map[string]*userListing)} }

// get returns a recent list.
func (l *listings) get(ctx context.Context, now moment) (*listing, error) {
	mine := l.mine(ctx)
	mine.mu.Lock()
	defer mine.mu.Unlock()
	if mine.last != nil && time.Since(mine.asked) < max(listPause, listShare*mine.took) {
		return mine.last, nil
	}
	seen, err := l.ask.query(ctx, &storepb.Query{Query: &storepb.Query_StatFs{StatFs: new(storepb.StatFs)}})
	if err != nil {
		return nil, err
	}
	if mine.last == nil || seen.GetIndex() != mine.last.index || seen.GetIndex() == 0 {
		began := time.Now()
		if mine.last, err = l.list(ctx, seen.GetIndex(), now); err != nil {
			return nil, err
		}
		mine.took = time.Since(began)
	}
	mine.asked = time.Now()
	return mine.last, nil
}

func (l *listings) mine(ctx context.Context) *userListing {
	caller := rpc.CallerOf(ctx)
	key := fmt.Sprint(caller.UID, caller.GID, caller.Groups, caller.Groups == nil)
	l.mu.Lock()
	defer l.mu.Unlock()
	mine := l.of[key]
	if mine == nil {
		if len(l.of) >= mostListings {
			l.dropOldest()
		}
		mine = new(userListing)
		l.of[key] = mine
	}
	mine.used = time.Now()
	return mine
}

func (l *listings) dropOldest() {
	oldest := ""
	for key, other := range l.of {
		if oldest == "" || other.used.Before(l.of[oldest].used) {
			oldest = key
		}
	}
	delete(l.of, oldest)
}

func (l *listings) list(ctx context.Context, index uint64, now moment) (*listing, error) {
	all := &listing{index: index, now: now, full: make(map[string]*storepb.Lock)}
	for next := (&storepb.ListLocks{Viewer: viewer(ctx)}); ; {
		result, err := l.ask.query(ctx, &storepb.Query{Query: &storepb.Query_ListLocks{ListLocks: next}})
		if err != nil {
			return nil, err
		}
		found := result.GetLocks()
		if len(found) == 0 {
			return all, nil
		}
		for _, lock := range found {
			all.locks = append(all.locks, describe(lock))
			all.full[string(lock.GetPath())] = lock
		}
		last := found[len(found)-1]
		next = &storepb.ListLocks{Viewer: viewer(ctx), AfterParent: last.GetParent(), AfterName: last.GetName()}
	}
}
