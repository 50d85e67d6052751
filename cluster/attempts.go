package cluster

import (
	"net/netip"
	"sync"
	"time"

	"lockfs/cluster/rpc"
)

// How often somebody may want to join from one address: so many at once, and then one in each interval.
const (
	attemptsAtOnce  = 50
	attemptInterval = 200 * time.Millisecond
	refusalInterval = time.Minute // between events that tell of refusals
	mostAttempts    = 10_000      // addresses that are remembered; more than that have to share
)

// attempts counts those of strangers to join, by their addresses.
type attempts struct {
	mu   sync.Mutex
	from map[netip.Addr]*attempt
}

type attempt struct {
	spent   time.Duration // monotonic time up to which its attempts are used up
	refused time.Duration // when an event last told of a refusal; 0: never
}

func newAttempts() *attempts { return &attempts{from: make(map[netip.Addr]*attempt)} }

// allowed counts an attempt, and tells whether it is one too many.
func (a *attempts) allowed(caller rpc.Caller, now time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	of := a.of(caller, now)
	of.spent = max(of.spent, now-attemptsAtOnce*attemptInterval)
	if of.spent+attemptInterval > now {
		return false
	}
	of.spent += attemptInterval
	return true
}

// newRefusal tells whether an event is to tell that somebody was refused.
func (a *attempts) newRefusal(caller rpc.Caller, now time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	of := a.of(caller, now)
	if of.refused != 0 && now-of.refused < refusalInterval {
		return false
	}
	of.refused = now
	return true
}

func (a *attempts) of(caller rpc.Caller, now time.Duration) *attempt {
	address := caller.Address
	of := a.from[address]
	if of == nil && len(a.from) >= mostAttempts {
		a.forget(now)
	}
	if of == nil && len(a.from) >= mostAttempts {
		address = netip.Addr{}
		of = a.from[address]
	}
	if of == nil {
		of = &attempt{spent: now - attemptsAtOnce*attemptInterval}
		a.from[address] = of
	}
	return of
}

// forget forgets those of whom nothing is to be remembered any more.
func (a *attempts) forget(now time.Duration) {
	for address, of := range a.from {
		if now-of.spent >= attemptsAtOnce*attemptInterval && (of.refused == 0 || now-of.refused >= refusalInterval) {
			delete(a.from, address)
		}
	}
}
