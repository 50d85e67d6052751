package cluster

import (
	"sync"
	"time"
)

// How often somebody may do something: so many times at once, and then once in each interval.
const (
	attemptsAtOnce   = 50
	attemptInterval  = 200 * time.Millisecond
	refusalInterval  = time.Minute // between events that tell of refusals, of each address
	mostRefusalsTold = 20          // in that time, of all addresses: a stranger may have many
	mostAttempts     = 10_000      // who is remembered; more than that have to share
)

// attempts are what is not to be done too often: to join, by the addresses of who wants to, and to open a session, by hosts.
type attempts struct {
	mu   sync.Mutex
	from map[string]*attempt
	told time.Duration // monotonic time up to which the refusals that are told of are used up
}

type attempt struct {
	spent   time.Duration // monotonic time up to which its attempts are used up
	refused time.Duration // when an event last told of a refusal; 0: never
}

func newAttempts() *attempts {
	return &attempts{from: make(map[string]*attempt), told: -refusalInterval}
}

// allowed counts an attempt, and tells whether it is one too many.
func (a *attempts) allowed(who string, now time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	of := a.of(who, now)
	of.spent = max(of.spent, now-attemptsAtOnce*attemptInterval)
	if of.spent+attemptInterval > now {
		return false
	}
	of.spent += attemptInterval
	return true
}

// newRefusal tells whether an event is to tell that somebody was refused.
func (a *attempts) newRefusal(who string, now time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	of := a.of(who, now)
	if of.refused != 0 && now-of.refused < refusalInterval {
		return false
	}
	a.told = max(a.told, now-refusalInterval)
	if a.told+refusalInterval/mostRefusalsTold > now {
		return false
	}
	a.told += refusalInterval / mostRefusalsTold
	of.refused = now
	return true
}

func (a *attempts) of(who string, now time.Duration) *attempt {
	of := a.from[who]
	if of == nil && len(a.from) >= mostAttempts {
		a.forget(now)
	}
	if of == nil && len(a.from) >= mostAttempts {
		who = ""
		of = a.from[who]
	}
	if of == nil {
		of = &attempt{spent: now - attemptsAtOnce*attemptInterval}
		a.from[who] = of
	}
	return of
}

// forget forgets those of whom nothing is to be remembered any more.
func (a *attempts) forget(now time.Duration) {
	for who, of := range a.from {
		if now-of.spent >= attemptsAtOnce*attemptInterval && (of.refused == 0 || now-of.refused >= refusalInterval) {
			delete(a.from, who)
		}
	}
}
