package page

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/health"
	"lockfs/raftstore/storepb"
)

// overview is the state of the cluster, equal for all users. It is read-only.
type overview struct {
	Banner  Banner
	Members []Member
	Hosts   []Host
	Alarms  []alarmRow
}

// alarmRow is a row in the list of alarms.
type alarmRow struct {
	Number uint64
	Kind   string
	Member string
	Since  moment
	Text   string
}

// Banner is the top of every page.
type Banner struct {
	Health  health.Health
	Leader  string
	Term    uint64
	Spread  time.Duration // largest difference between the clocks of servers and mount hosts
	Clocks  int           // number of known clocks
	Silent  []string      // unreachable hosts
	Alarms  []string
	Locks   int // files, directories and links
	Warning string
}

// SpreadText returns the spread as text.
func (b Banner) SpreadText() string { return fine(b.Spread.Round(time.Millisecond)) }

// Wide reports whether clocks differ too much for timestamps in locks.
func (b Banner) Wide() bool { return b.Spread >= time.Second }

// AlarmKinds returns the kinds of the alarms as text.
func (b Banner) AlarmKinds() string {
	kinds := make([]string, len(b.Alarms))
	for i, alarm := range b.Alarms {
		kind, _, _ := strings.Cut(alarm, ":")
		kinds[i] = strings.ReplaceAll(kind, "_", " ")
	}
	return strings.Join(kinds, ", ")
}

// Trouble returns the troubles of the cluster as text for screen readers; empty: none. It has no figures
// which change all the time.
func (b Banner) Trouble() string {
	var troubles []string
	switch silent := b.Health.Silent; {
	case !b.Health.Confirmed:
		troubles = append(troubles, b.Health.String())
	case len(silent) > 0:
		troubles = append(troubles, fmt.Sprintf("%d of %d voters do not answer", len(silent), b.Health.Voters))
	}
	if b.Wide() {
		troubles = append(troubles, "clocks differ by more than a second")
	}
	if len(b.Silent) > 0 {
		troubles = append(troubles, "silent hosts: "+strings.Join(b.Silent, ", "))
	}
	if len(b.Alarms) > 0 {
		troubles = append(troubles, "alarms: "+b.AlarmKinds())
	}
	return strings.Join(troubles, "; ")
}

// overviewTime is how long an overview is cached.
const overviewTime = time.Second

// overviewCache asks all members at most once in overviewTime.
type overviewCache struct {
	ask asker

	mu    sync.Mutex
	last  *overview
	asked time.Time
	ahead time.Duration // cluster time minus this host's clock
}

func (c *overviewCache) get(ctx context.Context) *overview {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil || time.Since(c.asked) >= overviewTime {
		c.last = c.look(context.WithoutCancel(ctx))
		c.asked = time.Now()
	}
	return c.last
}

// now returns the last known cluster time.
func (c *overviewCache) now() moment {
	c.mu.Lock()
	defer c.mu.Unlock()
	return moment(time.Now().Add(c.ahead).UnixNano())
}

// look asks all members. Missing replies leave gaps and cause no error.
func (c *overviewCache) look(ctx context.Context) *overview {
	known, err := c.ask.status(ctx, "", false)
	if err != nil {
		return &overview{Banner: Banner{Health: health.Of(nil, err)}}
	}
	replies := make([]*clusterpb.StatusReply, len(known.GetMembers()))
	failures := make([]error, len(replies))
	var asking sync.WaitGroup
	for i, member := range known.GetMembers() {
		asking.Go(func() { replies[i], failures[i] = c.ask.status(ctx, member.GetId(), true) })
	}
	var hosts, alarms *storepb.Result
	var sessions []*clusterpb.Session
	var unanswered error
	asking.Go(func() {
		hosts, unanswered = c.ask.query(ctx, &storepb.Query{Query: &storepb.Query_ListHosts{ListHosts: new(storepb.ListHosts)}})
	})
	asking.Go(func() {
		alarms, _ = c.ask.query(ctx, &storepb.Query{Query: &storepb.Query_ListAlarms{ListAlarms: new(storepb.ListAlarms)}})
	})
	asking.Go(func() { sessions, _ = c.ask.sessions(ctx) })
	asking.Wait()

	leader := leaderOf(replies)
	o := &overview{Members: describeMembers(known, replies, failures, leader)}
	if leader != nil {
		c.ahead = time.Until(time.Unix(0, leader.GetClusterTime()))
	}
	o.Hosts = describeHosts(hosts.GetHosts(), sessions, o.Members)
	o.Banner = Banner{
		Health: health.Of(votersOf(known, failures), unanswered), Term: leader.GetTerm(), Locks: int(known.GetInodes()),
	}
	if unanswered == nil {
		o.Banner.Leader = leader.GetName()
	}
	o.Banner.Spread, o.Banner.Clocks = Spread(leader, sessions)
	for _, h := range o.Hosts {
		if h.State == hostUnreachable {
			o.Banner.Silent = append(o.Banner.Silent, h.Name)
		}
	}
	for _, alarm := range alarms.GetAlarms() {
		o.Alarms = append(o.Alarms, alarmRow{alarm.GetNumber(), strings.ReplaceAll(alarm.GetKind(), "_", " "), alarm.GetName(), moment(alarm.GetSince()), alarm.GetText()})
		o.Banner.Alarms = append(o.Banner.Alarms, fmt.Sprintf("%s: %s", alarm.GetKind(), alarm.GetText()))
	}
	if known.GetInsecure() {
		o.Banner.Warning = "Insecure: every program that reaches the port of a server has all rights."
	}
	return o
}

// leaderOf returns the reply of the leader with the highest term; nil: none.
func leaderOf(replies []*clusterpb.StatusReply) (leader *clusterpb.StatusReply) {
	for _, reply := range replies {
		if reply.GetState() == "leader" && reply.GetTerm() >= leader.GetTerm() {
			leader = reply
		}
	}
	return leader
}

// votersOf returns the voters among the members. failures is in the order of known.
func votersOf(known *clusterpb.StatusReply, failures []error) (voters []health.Voter) {
	for i, member := range known.GetMembers() {
		if !slices.Contains(known.GetVoters(), member.GetId()) {
			continue
		}
		voter := health.Voter{Name: member.GetName()}
		if failures[i] != nil {
			voter.Failure = health.Cause(failures[i])
		}
		voters = append(voters, voter)
	}
	return voters
}

// Spread returns the largest difference between the clocks known to the leader, and the number of clocks.
func Spread(leader *clusterpb.StatusReply, sessions []*clusterpb.Session) (time.Duration, int) {
	var offsets []int64
	for _, voter := range leader.GetVotersSeen() {
		offsets = append(offsets, voter.GetClockOffset())
	}
	for _, session := range sessions {
		offsets = append(offsets, session.GetClockOffset())
	}
	if len(offsets) == 0 {
		return 0, 0
	}
	return time.Duration(slices.Max(offsets) - slices.Min(offsets)), len(offsets)
}
