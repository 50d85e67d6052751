package faultinjection

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

// onAnIsland leaves a guest connected only to the leader.
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

// cutFromLeader cuts the link between a host and the leader.
func cutFromLeader(s *Site, g *target, _ Strike) func() {
	leading := s.leading().host
	if leading == g.host { // it has just become the leader
		return nil
	}
	g.host.CutLink(leading)
	return func() { g.host.HealLink(leading) }
}

// cutFromFollower cuts the link between a host and a follower.
func cutFromFollower(s *Site, g *target, strike Strike) func() {
	leading := s.leading()
	var followers []*hosts.Host
	for _, other := range s.servers {
		if other != leading && other != g {
			followers = append(followers, other.host)
		}
	}
	other := followers[strike.Pick%uint64(len(followers))]
	g.host.CutLink(other)
	return func() { g.host.HealLink(other) }
}

// flapping cuts and heals a host repeatedly.
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

// slowLink limits each direction to 64 to 564 kbit/s and drops packets delayed by more than half a second.
func slowLink(_ *Site, g *target, strike Strike) func() {
	g.host.Slow(64+int(500*strike.Amount), 500*time.Millisecond)
	return g.host.Fast
}

// losing drops a tenth to a half of all packets.
func losing(_ *Site, g *target, strike Strike) func() {
	g.host.Lose(10 + int(40*strike.Amount))
	return g.host.LoseNone
}
