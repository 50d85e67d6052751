package cluster

import (
	"sync"
	"time"
)

// How often somebody may do something: so many times at once, and then once in each interval.
const (
	rateBurst      = 50
	rateInterval   = 200 * time.Millisecond
	reportInterval = time.Minute // between events that tell of refusals, of each address
	maxReports     = 20          // in that time, of all addresses: a stranger may have many
	maxKeys        = 10_000      // who is remembered; more than that have to share
)

// rateLimits are what is not to be done too often: to join, by the addresses of who wants to, and to open a session, by hosts.
type rateLimits struct {
	mu            sync.Mutex
	keys          map[string]*rateLimit
	reportedUntil time.Duration // monotonic time up to which the refusals that are told of are used up
}

type rateLimit struct {
	spentUntil time.Duration // monotonic time up to which its attempts are used up
	reported   time.Duration // when an event last told of a refusal; 0: never
}

func newRateLimits() *rateLimits {
	return &rateLimits{keys: make(map[string]*rateLimit), reportedUntil: -reportInterval}
}

// allow counts an attempt, and tells whether it is one too many.
func (l *rateLimits) allow(who string, now time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.of(who, now)
	of.spentUntil = max(of.spentUntil, now-rateBurst*rateInterval)
	if of.spentUntil+rateInterval > now {
		return false
	}
	of.spentUntil += rateInterval
	return true
}

// mayReport tells whether an event is to tell that somebody was refused.
func (l *rateLimits) mayReport(who string, now time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.of(who, now)
	if of.reported != 0 && now-of.reported < reportInterval {
		return false
	}
	l.reportedUntil = max(l.reportedUntil, now-reportInterval)
	if l.reportedUntil+reportInterval/maxReports > now {
		return false
	}
	l.reportedUntil += reportInterval / maxReports
	of.reported = now
	return true
}

func (l *rateLimits) of(who string, now time.Duration) *rateLimit {
	of := l.keys[who]
	if of == nil && len(l.keys) >= maxKeys {
		l.forget(now)
	}
	if of == nil && len(l.keys) >= maxKeys {
		who = ""
		of = l.keys[who]
	}
	if of == nil {
		of = &rateLimit{spentUntil: now - rateBurst*rateInterval}
		l.keys[who] = of
	}
	return of
}

// forget forgets those of whom nothing is to be remembered any more.
func (l *rateLimits) forget(now time.Duration) {
	for who, of := range l.keys {
		if now-of.spentUntil >= rateBurst*rateInterval && (of.reported == 0 || now-of.reported >= reportInterval) {
			delete(l.keys, who)
		}
	}
}
