package cluster

import (
	"sync"
	"time"
)

// Each key has a burst, and then one permit in each interval.
const (
	rateBurst      = 50
	rateInterval   = 200 * time.Millisecond
	reportInterval = time.Minute // between two events about refusals of one key
	maxReports     = 20          // in this time, of all keys: a stranger may have many addresses
	maxKeys        = 10_000      // remembered; further ones share one limit
)

// rateLimits limit join requests by address, and opened sessions by host.
type rateLimits struct {
	mu            sync.Mutex
	keys          map[string]*rateLimit
	reportedUntil time.Duration // monotonic time up to which the reports are used up
}

type rateLimit struct {
	spentUntil time.Duration // monotonic time up to which the permits are used up
	reported   time.Duration // last report of a refusal; 0: never
}

func newRateLimits() *rateLimits {
	return &rateLimits{keys: make(map[string]*rateLimit), reportedUntil: -reportInterval}
}

// allow takes a permit, and reports whether there was one.
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

// mayReport reports whether an event should tell about a refusal.
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

// forget drops keys at their initial state.
func (l *rateLimits) forget(now time.Duration) {
	for who, of := range l.keys {
		if now-of.spentUntil >= rateBurst*rateInterval && (of.reported == 0 || now-of.reported >= reportInterval) {
			delete(l.keys, who)
		}
	}
}
