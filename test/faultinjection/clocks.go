package faultinjection

import (
	"sync"
	"time"
)

// furthest is less than the shortest time to stale of any lock. Only daemons have a wrong clock, not the
// other programs of the host, so the times in their locks look wrong by this much.
const furthest = 10 * time.Minute

// clockJumps sets a clock wrong, and later right.
func clockJumps(s *Site, g *target, strike Strike) func() {
	g.setClock(s.t, time.Duration((2*strike.Amount-1)*float64(furthest)))
	return func() { g.setClock(s.t, 0) }
}

// clockDrifts makes a clock faster or slower by up to a half, and later right.
func clockDrifts(s *Site, g *target, strike Strike) func() {
	const interval = 20 * time.Millisecond
	rate := strike.Amount - 0.5
	stop := make(chan struct{})
	var going sync.WaitGroup
	going.Go(func() {
		for began := time.Now(); ; {
			g.setClock(s.t, time.Duration(rate*float64(time.Since(began))))
			select {
			case <-stop:
				return
			case <-time.After(interval):
			}
		}
	})
	return func() {
		close(stop)
		going.Wait()
		g.setClock(s.t, 0)
	}
}
