package page

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"lockfs/cluster/rpc"
)

type kind struct {
	Name, Path string
	every      time.Duration // interval of live updates
	build      func(*Server, *http.Request) (*content, error)
}

var kinds = []kind{
	{"locks", "/{$}", 250 * time.Millisecond, (*Server).locksPage},
	{"events", "/events", 500 * time.Millisecond, (*Server).eventsPage},
	{"hosts", "/hosts", time.Second, (*Server).hostsPage},
	{"members", "/members", time.Second, (*Server).membersPage},
	{"alarms", "/alarms", time.Second, (*Server).alarmsPage},
	{"lock", "/lock/{path...}", 500 * time.Millisecond, (*Server).lockPage},
}

type locksAsked struct {
	Selection selection
	States    []choice
	Groups    []choice
}

type choice struct{ Value, Label string }

var (
	states = []choice{
		{"", "all locks"}, {"unreachable", "unreachable"}, {"stale", "stale"}, {"waited", "with waiters"}, {"held", "held"}, {"all", "locks and data"},
	}
	groupings = []choice{{"", "no groups"}, {"directory", "by directory"}, {"host", "by host"}}
)

// count is the line above a list of locks. The tally is of all locks.
type count struct {
	tally
	From, To, Found int
	Filters         bool
}

// InPages reports whether the page lacks some of the found locks.
func (c count) InPages() bool { return c.Found > rowsShown }

// Trouble returns the troubles of all locks as text; empty: none.
func (c count) Trouble() string {
	var troubles []string
	for _, part := range []struct {
		n    int
		name string
	}{{c.Unreachable, "unreachable"}, {c.Stale, "stale"}} {
		if part.n > 0 {
			troubles = append(troubles, fmt.Sprintf("%d %s", part.n, part.name))
		}
	}
	return strings.Join(troubles, ", ")
}

func (s *Server) locksPage(r *http.Request) (*content, error) {
	selected := parseSelection(r.URL.Query())
	all, err := s.listings.get(r.Context(), s.overview.now())
	if err != nil {
		return nil, err
	}
	picked := selected.of(all.locks)
	shown, from, pages := selected.paged(picked)
	n := count{From: from + 1, To: from + len(shown), Found: len(picked), Filters: selected.Filters()}
	for _, l := range all.locks {
		if l.State != stateData {
			n.add(l)
		}
	}
	return &content{
		Title: "Locks", Asked: locksAsked{selected, states, groupings},
		Blocks: []piece{
			{"count", "block-count", n}, {"pager", "block-pager", pages}, {"none", "block-none", n}, {"lock-trouble", "block-lock-trouble", n.Trouble()},
		},
		Lists: []list{{"locks", selected.rows(picked, shown)}},
	}, nil
}

type lockShown struct {
	*LockDetail
	Timeline *Timeline
	Admin    bool
	Now      moment
}

func (s *Server) lockPage(r *http.Request) (*content, error) {
	path := r.PathValue("path")
	d, err := s.lock(r.Context(), path)
	if err != nil {
		return nil, err
	}
	absences, err := s.absences(r.Context())
	if err != nil {
		return nil, err
	}
	shown := lockShown{
		LockDetail: d, Timeline: drawTimeline(d, absences, s.overview.now()), Admin: s.cfg.Administers(rpc.CallerOf(r.Context())),
	}
	for i := range d.Queue {
		d.Queue[i].Age -= float64(int64(d.Queue[i].Age) % 5) // otherwise the page would change each second
	}
	return &content{
		Title: path, Asked: r.URL.Query().Get("done"),
		Blocks: []piece{{"facts", "block-facts", shown}, {"timeline", "block-timeline", shown.Timeline}, {"queue", "block-queue", d.Queue}, {"history", "block-history", d.History}},
	}, nil
}

func (s *Server) eventsPage(r *http.Request) (*content, error) {
	asked := parseEventFilter(r.URL.Query())
	events, older, err := s.newest(r.Context(), asked)
	if err != nil {
		return nil, err
	}
	rows := make([]piece, len(events))
	for i, e := range events {
		rows[i] = piece{rowKey(e.Number), "row-event", e}
	}
	hosts := make([]string, 0)
	for _, h := range s.overview.get(r.Context()).Hosts {
		hosts = append(hosts, h.Name)
	}
	return &content{
		Title: "Events", Asked: eventsAsked{asked, eventKinds, hosts},
		Blocks: []piece{{"pager", "block-event-pager", asked.pages(older)}, {"none", "block-no-events", asked.filters()}},
		Lists:  []list{{"events", rows}},
	}, nil
}

func (s *Server) alarmsPage(r *http.Request) (*content, error) {
	o := s.overview.get(r.Context())
	rows := make([]piece, len(o.Alarms))
	for i, a := range o.Alarms {
		rows[i] = piece{rowKey(a.Number), "row-alarm", a}
	}
	return &content{Title: "Alarms", Lists: []list{{"alarms", rows}}}, nil
}

type hostRow struct {
	Host
	Cert  Certificate
	Admin bool
}

// Forgettable reports whether a host can be declared gone.
func (h hostRow) Forgettable() bool {
	return h.Admin && (h.State == hostUnreachable || h.State == hostLeft)
}

func (s *Server) hostsPage(r *http.Request) (*content, error) {
	hosts, err := s.hosts(r.Context())
	if err != nil {
		return nil, err
	}
	admin := s.cfg.Administers(rpc.CallerOf(r.Context()))
	rows := make([]piece, len(hosts))
	for i, h := range hosts {
		row := hostRow{Host: h, Admin: admin}
		if h.Certificate != nil {
			row.Cert = *h.Certificate
		}
		row.Certificate = nil
		rows[i] = piece{h.Name, "row-host", row}
	}
	return &content{Title: "Hosts", Asked: admin, Lists: []list{{"hosts", rows}}}, nil
}

type memberShown struct {
	Member
	Charts []Chart
}

func (s *Server) membersPage(r *http.Request) (*content, error) {
	o := s.overview.get(r.Context())
	rows := make([]piece, len(o.Members))
	for i, m := range o.Members {
		m.Silent = float64(int(m.Silent)/5) * 5 // it changes all the time
		m.Offset = float64(int64(m.Offset*100)) / 100
		rows[i] = piece{m.Name, "row-member", memberShown{m, charts(m.Samples)}}
	}
	return &content{Title: "Members", Lists: []list{{"members", rows}}}, nil
}

func (s *Server) build(r *http.Request, k kind) (*content, error) {
	o := s.overview.get(r.Context())
	c, err := k.build(s, r)
	if err != nil {
		return nil, err
	}
	c.Blocks = append(c.Blocks, piece{"banner", "block-banner", o.Banner}, piece{"trouble", "block-trouble", o.Banner.Trouble()})
	return c, nil
}

func (s *Server) show(w http.ResponseWriter, r *http.Request, k kind) {
	c, err := s.build(r, k)
	if err != nil {
		s.failWith(w, r, err)
		return
	}
	live := (&url.URL{Path: "/live" + r.URL.Path, RawPath: "/live" + r.URL.EscapedPath(), RawQuery: r.URL.RawQuery}).String()
	s.write(w, http.StatusOK, k.Name, s.view(r, &view{content: c, Kind: k.Name, Live: live}))
}
