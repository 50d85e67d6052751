package faults

import (
	"math/rand/v2"
	"testing"
	"time"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// A schedule does harm to a cluster of three with a guest, one thing at a time. What it does and for how
// long is drawn from its seed.
type schedule struct {
	c      *testcluster.Cluster
	guest  *testcluster.Guest
	term   time.Duration // of sessions
	random *rand.Rand
	harms  []harm
}

// harm is over when it returns; all hosts can be used again soon.
type harm struct {
	name string
	do   func(*schedule, testing.TB)
}

// harms are those of faults.
var harms = append(linkHarms, []harm{
	{"leader killed", func(s *schedule, t testing.TB) { s.restart(t, s.c.Leader()) }},
	{"follower killed", func(s *schedule, t testing.TB) { s.restart(t, s.follower()) }},
	{"guest's daemon killed", func(s *schedule, t testing.TB) {
		s.guest.Kill()
		s.hold(0, 1)
		s.guest.Start(t)
	}},
	{"leader frozen", func(s *schedule, t testing.TB) { s.freeze(s.c.Leader().Server) }},
	{"follower frozen", func(s *schedule, t testing.TB) { s.freeze(s.follower().Server) }},
	{"guest's daemon frozen", func(s *schedule, t testing.TB) { s.freeze(s.guest.Daemon) }},
	{"leader cut off", func(s *schedule, t testing.TB) { s.cut(s.c.Leader().Host) }},
	{"follower cut off", func(s *schedule, t testing.TB) { s.cut(s.follower().Host) }},
	{"guest cut off", func(s *schedule, t testing.TB) { s.cut(s.guest.Host) }},
	{"leader hears nobody", func(s *schedule, t testing.TB) {
		leader := s.c.Leader().Host
		s.oneWay(s.hostsBut(leader), []*hosts.Host{leader})
	}},
	{"leader is not heard", func(s *schedule, t testing.TB) {
		leader := s.c.Leader().Host
		s.oneWay([]*hosts.Host{leader}, s.hostsBut(leader))
	}},
	{"guest does not hear the leader", func(s *schedule, t testing.TB) {
		s.oneWay([]*hosts.Host{s.c.Leader().Host}, []*hosts.Host{s.guest.Host})
	}},
	{"leader and guest on an island", func(s *schedule, t testing.TB) {
		island := []*hosts.Host{s.c.Leader().Host, s.guest.Host}
		s.split(island, s.hostsBut(island...))
	}},
}...)

// linkHarms cut single pairs of hosts: all of them still reach a common server.
var linkHarms = []harm{
	{"guest cut from the leader only", func(s *schedule, t testing.TB) { s.cutLinks(s.c.Leader().Host, s.guest.Host) }},
	{"follower cut from the leader only", func(s *schedule, t testing.TB) { s.cutLinks(s.c.Leader().Host, s.follower().Host) }},
	{"guest and follower cut from the leader only", func(s *schedule, t testing.TB) {
		s.cutLinks(s.c.Leader().Host, s.guest.Host, s.follower().Host)
	}},
	{"guest cut from the leader only, which is killed then", func(s *schedule, t testing.TB) {
		leader := s.c.Leader()
		leader.Host.CutLink(s.guest.Host)
		s.hold(0.5, 1.5)
		s.restart(t, leader)
		leader.Host.HealLink(s.guest.Host)
	}},
	{"followers cut from each other", func(s *schedule, t testing.TB) {
		followers := s.c.Others(s.c.Leader())
		s.cutLinks(followers[0].Host, followers[1].Host)
	}},
}

// run does so many harms, each kind as often as the others.
func (s *schedule) run(t testing.TB, count int) {
	t.Helper()
	for done := 0; done < count; {
		for _, i := range s.random.Perm(len(s.harms)) {
			if done == count {
				return
			}
			began := time.Now()
			s.harms[i].do(s, t)
			s.c.Leader()
			done++
			t.Logf("%s (%.1fs)", s.harms[i].name, time.Since(began).Seconds())
		}
	}
}

// hold lets a state last, for some time between two multiples of the sessions' term.
func (s *schedule) hold(from, to float64) {
	time.Sleep(time.Duration((from + (to-from)*s.random.Float64()) * float64(s.term)))
}

func (s *schedule) follower() *testcluster.Node {
	followers := s.c.Others(s.c.Leader())
	return followers[s.random.IntN(len(followers))]
}

// restart kills a node and starts it again, with a clock that may be wrong by an hour; those of the others
// are right then.
func (s *schedule) restart(t testing.TB, n *testcluster.Node) {
	t.Helper()
	n.Kill()
	s.hold(0.5, 1.5)
	wrong := time.Duration(s.random.IntN(3)-1) * time.Hour
	for _, other := range s.c.Others(n) {
		if other.Ahead != 0 {
			wrong = 0
		}
	}
	n.SetClock(t, wrong)
	if wrong != 0 {
		t.Logf("the clock of %s is off by %v", n.Name, wrong)
	}
	n.Start(t)
}

// freeze stops a process for longer than its session lasts.
func (s *schedule) freeze(p *hosts.Process) {
	p.Freeze()
	s.hold(1.2, 1.8)
	p.Thaw()
}

func (s *schedule) cut(h *hosts.Host) {
	h.Cut()
	s.hold(1, 2)
	h.Heal()
}

// oneWay loses what some hosts send to others.
func (s *schedule) oneWay(senders, receivers []*hosts.Host) {
	for _, receiver := range receivers {
		for _, sender := range senders {
			receiver.CutFrom(sender)
		}
	}
	s.hold(1, 2)
	for _, receiver := range receivers {
		receiver.Heal()
	}
}

// cutLinks cuts the links between a host and some others.
func (s *schedule) cutLinks(of *hosts.Host, with ...*hosts.Host) {
	for _, other := range with {
		of.CutLink(other)
	}
	s.hold(1, 3)
	for _, other := range with {
		of.HealLink(other)
	}
}

// split loses all that goes between two groups of hosts.
func (s *schedule) split(island, mainland []*hosts.Host) {
	for _, a := range island {
		for _, b := range mainland {
			a.CutFrom(b)
			b.CutFrom(a)
		}
	}
	s.hold(1, 2)
	for _, h := range island {
		h.Heal()
	}
}

func (s *schedule) hostsBut(some ...*hosts.Host) []*hosts.Host {
	var rest []*hosts.Host
next:
	for _, h := range s.hosts() {
		for _, excluded := range some {
			if h == excluded {
				continue next
			}
		}
		rest = append(rest, h)
	}
	return rest
}

// hosts is all of them, the guest last.
func (s *schedule) hosts() []*hosts.Host {
	var all []*hosts.Host
	for _, n := range s.c.Nodes {
		all = append(all, n.Host)
	}
	return append(all, s.guest.Host)
}
