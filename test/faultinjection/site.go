package faultinjection

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// A Site is a cluster for fault injection. It is for one goroutine.
type Site struct {
	Cluster  *testcluster.Cluster
	Next     string // program of the next version
	Coverage *Coverage
	Tell     func(strike string) // called for each strike that begins
	Replaced []string            // hosts with replaced servers
	// Unsettled has those of them whose mounts ended before failed calls were undone.
	Unsettled []string

	t       testing.TB
	term    time.Duration
	servers []*target
	guests  []*target
	active  map[int]*active // running strikes, by number
	last    *target         // the last known leader

	errands   sync.WaitGroup // commands to the cluster
	replacing *replacement
}

// active is a running strike.
type active struct {
	Strike
	kind   kind
	target *target
	end    func()
	began  time.Time
}

// NewSite starts the servers, one more without a vote, and guests. Some clocks are permanently wrong. In a
// cluster with certificates, they are valid for the given time.
func NewSite(t testing.TB, c *testcluster.Cluster, next string, servers, guests int, term, validity time.Duration, guestFlags ...string) *Site {
	t.Helper()
	s := &Site{Cluster: c, Next: next, Coverage: NewCoverage(), t: t, term: term, active: make(map[int]*active), Tell: func(string) {}}
	t.Cleanup(func() { // if the test failed meanwhile
		for _, number := range sortedNumbers(s.active) {
			s.end(s.active[number])
		}
		s.errands.Wait()
		if t.Failed() {
			s.dumpUnready()
		}
	})
	for i := range servers + 1 {
		n := c.Add(t)
		g := &target{name: n.Name, host: n.Host, node: n, voter: i < servers, metrics: newMetrics(n.Host, n.HTTPAddr())}
		g.clock = filepath.Join(c.Net.Dir(), n.Name+".clock")
		g.disk = startDisk(t, n.Host, n.Data)
		n.Environment = []string{"LOCKFS_TEST_CLOCK_FILE=" + g.clock, "LOCKFS_TEST_CERTIFICATE_VALIDITY=" + validity.String()}
		n.Other = s.install(n.Name, c.Program)
		if !g.voter {
			n.Flags = []string{"--nonvoter"}
		}
		if i == servers-1 {
			g.ahead = 300 * time.Millisecond
		}
		g.setClock(t, 0)
		g.launch(t)
		n.AwaitReady(t)
		// Only its host sees the disk. Elsewhere this directory shows that the server has joined.
		require.NoError(t, os.MkdirAll(n.Identity(), 0o700))
		s.servers = append(s.servers, g)
	}
	const guestPort = "127.0.0.1:7422"
	for i := range guests {
		name := fmt.Sprintf("guest%d", i+1)
		guest := c.AddGuest(t, name, append(guestFlags, "--http-addr", guestPort)...)
		g := &target{name: name, host: guest.Host, guest: guest, metrics: newMetrics(guest.Host, guestPort)}
		g.clock = filepath.Join(c.Net.Dir(), name+".clock")
		g.ahead = []time.Duration{2 * time.Minute, -2 * time.Minute, 0}[i%3]
		guest.Environment = []string{"LOCKFS_TEST_CLOCK_FILE=" + g.clock}
		guest.Other = s.install(name, c.Program)
		g.setClock(t, 0)
		guest.Start(t)
		s.guests = append(s.guests, g)
	}
	s.last = s.servers[0]
	s.sample()
	return s
}

// install installs a program for a host's next start or upgrade, and returns its path.
func (s *Site) install(host, program string) (path string) {
	s.t.Helper()
	path = filepath.Join(s.Cluster.Net.Dir(), host+".program", "lockfs")
	require.NoError(s.t, os.MkdirAll(filepath.Dir(path), 0o755))
	fresh := path + ".new"
	require.NoError(s.t, os.Link(program, fresh))
	require.NoError(s.t, os.Rename(fresh, path))
	_ = os.Remove(fresh) // if it had that program already, rename(2) leaves two names of one file
	return path
}

func (s *Site) all() []*target { return slices.Concat(s.servers, s.guests) }

// Hosts returns the hosts with mounts.
func (s *Site) Hosts() (all []*hosts.Host) {
	for _, g := range s.all() {
		all = append(all, g.host)
	}
	return all
}

func (s *Site) hostsBut(some ...*hosts.Host) []*hosts.Host {
	return slices.DeleteFunc(s.Hosts(), func(h *hosts.Host) bool { return slices.Contains(some, h) })
}

// dumpUnready ends daemons that are not ready, with their stacks in the logs.
func (s *Site) dumpUnready() {
	for _, g := range s.all() {
		if g.daemon() == nil || g.ended() || g.ready() {
			continue
		}
		g.daemon().Signal(syscall.SIGQUIT)
		select {
		case <-g.daemon().Ended():
		case <-time.After(errandTime): // it may be blocked in the kernel
		}
	}
}

// sample queries all daemons at once.
func (s *Site) sample() {
	var asking sync.WaitGroup
	for _, g := range s.all() {
		asking.Go(g.metrics.ask)
	}
	asking.Wait()
}

// leading returns the leader, or the last known one.
func (s *Site) leading() *target {
	term := 0.0
	for _, g := range s.servers {
		seen, fresh := g.metrics.seen()
		if fresh && seen.values["lockfs_raft_is_leader"] == 1 && seen.values["lockfs_raft_term"] > term {
			term, s.last = seen.values["lockfs_raft_term"], g
		}
	}
	return s.last
}

// candidates returns the targets of a role with free parts.
func (s *Site) candidates(k kind) (free []*target) {
	var of []*target
	leading := s.leading()
	switch k.role {
	case leader:
		of = []*target{leading}
	case follower:
		of = slices.DeleteFunc(slices.Clone(s.servers), func(g *target) bool { return g == leading })
	case guest:
		of = s.guests
	}
	for _, g := range of {
		running := !g.away && !g.ended() && (k.parts&process == 0 || g.ready())
		tooManyClocks := k.parts&wallClock != 0 && g.node != nil && s.aClockIsWrong()
		if g.held&k.parts == 0 && running && !tooManyClocks {
			free = append(free, g)
		}
	}
	if k.parts&membership != 0 && s.membersChange() {
		return nil
	}
	return free
}

// aClockIsWrong reports whether a server's clock is wrong. Cluster time stays right with one wrong clock.
func (s *Site) aClockIsWrong() bool {
	return slices.ContainsFunc(s.servers, func(g *target) bool { return g.held&wallClock != 0 })
}

func (s *Site) membersChange() bool {
	return s.replacing != nil || slices.ContainsFunc(s.servers, func(g *target) bool { return g.held&membership != 0 })
}

// Run runs a schedule. All strikes have ended when it returns.
func (s *Site) Run(strikes []Strike) {
	s.t.Helper()
	began := time.Now()
	const tick = 100 * time.Millisecond
	var asking sync.WaitGroup
	var asks atomic.Bool
	for n := 0; len(strikes) > 0 || len(s.active) > 0; n++ {
		now := time.Since(began)
		for _, number := range sortedNumbers(s.active) {
			if a := s.active[number]; time.Since(a.began) >= a.For {
				s.end(a)
			}
		}
		for len(strikes) > 0 && strikes[0].At <= now {
			s.begin(strikes[0])
			strikes = strikes[1:]
		}
		s.supervise()
		if n%5 == 0 {
			for _, g := range s.servers {
				g.noteInstalled()
			}
		}
		if n%5 == 0 && asks.CompareAndSwap(false, true) { // a frozen daemon delays it
			asking.Go(func() {
				defer asks.Store(false)
				s.sample()
			})
		}
		time.Sleep(tick)
	}
	asking.Wait()
}

func sortedNumbers(active map[int]*active) (numbers []int) {
	for number := range active {
		numbers = append(numbers, number)
	}
	slices.Sort(numbers)
	return numbers
}

func (s *Site) begin(strike Strike) {
	k := kindsByName[strike.Kind]
	moments := s.moments()
	free := s.candidates(k)
	if len(free) == 0 {
		s.Coverage.leaveOut(k.name)
		return
	}
	a := &active{Strike: strike, kind: k, target: free[strike.Pick%uint64(len(free))], began: time.Now()}
	if a.end = k.begin(s, a.target, strike); a.end == nil {
		s.Coverage.leaveOut(k.name)
		return
	}
	a.target.held |= k.parts
	s.active[strike.Number] = a
	s.Coverage.note(k.name, moments)
	s.Tell(fmt.Sprintf("%s: %s, with %s", strike, a.target.name, strings.Join(moments, ", ")))
}

func (s *Site) end(a *active) {
	delete(s.active, a.Number)
	a.end()
	a.target.held &^= a.kind.parts
}

// moments returns the current moments.
func (s *Site) moments() (all []string) {
	for _, number := range sortedNumbers(s.active) {
		if name := s.active[number].kind.name; !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	add := func(moment string, is bool) {
		if is {
			all = append(all, moment)
		}
	}
	election, snapshot, leads, starting, installed, renewed := false, false, false, false, false, false
	members, revoked := s.replacing != nil, false
	for _, g := range s.servers {
		seen, fresh := g.metrics.seen()
		leads = leads || fresh && seen.values["lockfs_raft_is_leader"] == 1
		election = election || g.metrics.recently("lockfs_raft_term")
		snapshot = snapshot || g.metrics.recently("lockfs_snapshot_index")
		installed = installed || time.Since(g.installed) < time.Second
		members = members || g.metrics.recently("lockfs_raft_voters")
		revoked = revoked || g.metrics.recently(leasedInodes)
	}
	for _, g := range s.all() {
		renewed = renewed || g.metrics.recently("lockfs_certificate_expiry_timestamp_seconds")
		starting = starting || !g.away && !g.ready()
	}
	handOver := false
	for _, a := range s.active {
		handOver = handOver || a.target.handsOver(time.Since(a.began), a.kind)
	}
	seen, _ := s.leading().metrics.seen()
	add(MomentElection, election || !leads)
	add(MomentSnapshot, snapshot)
	add(MomentHandOver, handOver)
	add(MomentHeld, seen.values["lockfs_kernel_locks"]+seen.values["lockfs_locks"] > 0)
	add(MomentWaiting, seen.values["lockfs_kernel_lock_waiters"] > 0)
	add(MomentSilent, seen.values[`lockfs_hosts{state="silent"}`] > 0)
	add(MomentAlarm, seen.values["lockfs_alarms"] > 0)
	add(MomentStarting, starting)
	add(MomentInstall, installed)
	add(MomentMembers, members)
	add(MomentRenewal, renewed)
	add(MomentRevoked, revoked)
	return all
}

// supervise restarts daemons that ended by themselves, and upgrades mounts on request.
func (s *Site) supervise() {
	if s.replacing != nil {
		s.goOn(s.t, s.replacing)
	}
	for _, g := range s.guests {
		if !g.away && g.isOld() {
			g.told = time.Now()
			toNextVersion(s, g, Strike{})
		}
	}
	for _, g := range s.all() {
		if g.away || !g.ended() || time.Since(g.launched) < time.Second || s.isReplaced(g) {
			continue
		}
		if why := g.fault(); why != "" {
			s.t.Fatalf("%s ended by itself: %s", g.name, why)
		}
		g.launch(s.t)
	}
}

// isReplaced reports whether a server may not be a member any more.
func (s *Site) isReplaced(g *target) bool { return s.replacing != nil && s.replacing.old == g }

// fault returns a daemon's final message if its end had no good reason.
func (g *target) fault() string {
	if time.Since(g.excused) < excuseLasts || g.guest != nil && !strings.Contains(g.daemon().Log(), g.readyLine()) {
		return ""
	}
	return tailOf(g.daemon())
}

// tailOf returns the last lines of a process's output.
func tailOf(p *hosts.Process) string {
	lines := strings.Split(strings.TrimSpace(p.Log()), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}

// Settle waits until all faults are over: all daemons are ready, all follow one leader, and the intended
// servers vote. Another goroutine must use the cluster meanwhile.
func (s *Site) Settle(t testing.TB) {
	t.Helper()
	s.errands.Wait()
	var again []*target
	hosts.Eventually(t, "all daemons are ready", func() (string, bool) {
		s.supervise()
		again = slices.DeleteFunc(s.all(), func(g *target) bool { return g.ready() && !g.ended() || s.isReplaced(g) })
		var names []string
		for _, g := range again {
			names = append(names, g.name)
		}
		return strings.Join(names, ", "), len(again) == 0
	})
	s.sample()
	before := 0.0
	for _, g := range s.servers {
		seen, _ := g.metrics.seen()
		before = max(before, seen.values[appliedIndex])
	}
	hosts.Eventually(t, "a leader whom all servers follow", func() (string, bool) {
		s.supervise() // a daemon with a failed disk may have known the leader for a while before it ended
		s.sample()
		follow, leads := 0, 0
		for _, g := range s.servers {
			seen, fresh := g.metrics.seen()
			if fresh && seen.values["lockfs_raft_leader_known"] == 1 && seen.values[appliedIndex] > before || s.isReplaced(g) {
				follow++
			}
			if fresh && seen.values["lockfs_raft_is_leader"] == 1 {
				leads++
			}
		}
		return fmt.Sprintf("%d follow one, %d lead", follow, leads), follow == len(s.servers) && leads == 1
	})
	s.settleMembers(t)
	s.clearAlarms(t)
}
