package harm

import (
	"sync"
	"time"

	"lockfs/test/hosts"
)

func cutOff(_ *Site, g *target, _ Strike) func() {
	g.host.Cut()
	return g.host.Heal
}

func hearsNobody(s *Site, g *target, _ Strike) func() {
	for _, other := range s.hostsBut(g.host) {
		g.host.CutFrom(other)
	}
	return g.host.Heal
}

func isNotHeard(s *Site, g *target, _ Strike) func() {
	for _, other := range s.hostsBut(g.host) {
		other.CutFrom(g.host)
	}
	return g.host.Heal
}

// onAnIsland leaves a guest alone with the leader.
func onAnIsland(s *Site, g *target, _ Strike) func() {
	with := s.leading().host
	for _, other := range s.hostsBut(g.host, with) {
		for _, islander := range []*hosts.Host{g.host, with} {
			islander.CutFrom(other)
			other.CutFrom(islander)
		}
	}
	return func() {
		g.host.Heal()
		with.Heal()
	}
}

// flapping cuts a host off and heals it again and again.
func flapping(_ *Site, g *target, strike Strike) func() {
	interval := 50*time.Millisecond + time.Duration(strike.Amount*float64(450*time.Millisecond))
	stop := make(chan struct{})
	var going sync.WaitGroup
	going.Go(func() {
		for cut := true; ; cut = !cut {
			if cut {
				g.host.Cut()
			} else {
				g.host.Heal()
			}
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
		g.host.Heal()
	}
}

// slowLink lets 64 to 564 kbit/s through in each direction; what waits longer than half a second is lost.
func slowLink(_ *Site, g *target, strike Strike) func() {
	g.host.Slow(64+int(500*strike.Amount), 500*time.Millisecond)
	return g.host.Fast
}

// losing loses a tenth to a half of all packets.
func losing(_ *Site, g *target, strike Strike) func() {
	g.host.Lose(10 + int(40*strike.Amount))
	return g.host.LoseNone
}
