package page

import (
	"context"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"lockfs/raftstore/lockjson"
	"lockfs/raftstore/storepb"
)

// eventsSearched is the number of events in which the page looks for words.
const eventsSearched = 2000

type eventRow struct {
	Number uint64
	At     moment
	Event  string
	Path   string
	Link   string
	Who    string
	By     string
	Reason string
	Grave  bool
}

// Kind returns the event's kind as text.
func (e eventRow) Kind() string { return strings.ReplaceAll(e.Event, "_", " ") }

// eventGroup is a group of kinds of events.
type eventGroup struct {
	Name  string
	Kinds []string
}

var eventKinds = []eventGroup{
	{"Locks", []string{"lock_acquired", "lock_released", "lock_stale", "lock_stolen", "lock_removed", "locked_file_removed", "removal_refused"}},
	{"Hosts", []string{"host_unreachable", "host_back", "host_forgotten", "session_ended", "host_joined", "join_refused", "host_revoked"}},
	{"Cluster", []string{"alarm_raised", "alarm_cleared", "member_added", "member_removed", "version_raised", "cluster_begun"}},
	{"Settings", []string{
		"rule_set", "rule_deleted", "quota_set", "quota_deleted", "token_created", "token_revoked", "authority_added", "authority_dropped",
	}},
}

// graveEvents need an operator's attention.
var graveEvents = []string{
	"lock_stolen", "lock_stale", "removal_refused", "locked_file_removed", "host_unreachable", "alarm_raised", "join_refused", "host_revoked", "member_removed",
}

// deedEvents concern no lock, but may have a path.
var deedEvents = []string{"rule_set", "rule_deleted", "quota_set", "quota_deleted"}

// eventFilter selects events, the newest first.
type eventFilter struct {
	Words  string // each has to occur in the event
	Kind   string // empty: all
	Path   string // only this path and its subtree; empty: all
	Host   string // only events about this host or caused from it; empty: all
	Before uint64 // only events with smaller numbers; 0: all
}

type eventsAsked struct {
	Filter eventFilter
	Kinds  []eventGroup
	Hosts  []string
}

func parseEventFilter(q url.Values) eventFilter {
	f := eventFilter{
		Words: strings.TrimSpace(q.Get("q")), Kind: q.Get("kind"), Path: strings.Trim(q.Get("path"), " /"), Host: strings.TrimSpace(q.Get("host")),
	}
	f.Before, _ = strconv.ParseUint(q.Get("before"), 10, 64)
	return f
}

// query selects by kind, path and host.
func (f eventFilter) query(limit uint32) *storepb.ListEvents {
	list := &storepb.ListEvents{Host: f.Host, Below: []byte(f.Path), Limit: limit}
	if f.Kind != "" {
		list.Kinds = []string{f.Kind}
	}
	return list
}

// filters reports whether the filter may leave out new events.
func (f eventFilter) filters() bool { return f.Words+f.Kind+f.Path+f.Host != "" || f.Before != 0 }

// pages returns the links to newer and older events. older is the number of the last event on the page; 0: no
// older ones.
func (f eventFilter) pages(older uint64) (p pager) {
	link := func(before uint64) string {
		q := url.Values{}
		for key, value := range map[string]string{"q": f.Words, "kind": f.Kind, "path": f.Path, "host": f.Host} {
			if value != "" {
				q.Set(key, value)
			}
		}
		if before != 0 {
			q.Set("before", strconv.FormatUint(before, 10))
		}
		return "/events?" + q.Encode()
	}
	if f.Before != 0 {
		p.Previous = link(0)
	}
	if older != 0 {
		p.Next = link(older)
	}
	return p
}

func (s *Server) describeRow(e *storepb.Event) eventRow {
	d := lockjson.DescribeEvent(e)
	row := eventRow{
		Number: d.Number, At: moment(e.GetTime()), Event: d.Event, Path: d.LockPath, Reason: d.Reason, Grave: slices.Contains(graveEvents, d.Event),
	}
	if d.LockPath != "" && !slices.Contains(deedEvents, d.Event) {
		row.Link = Lock{Path: d.LockPath}.Link()
	}
	if d.Token != 0 || d.Host != "" {
		row.Who = holderOf(d)
	}
	if d.By != nil {
		row.By = s.users.name(d.By.UID) + " on " + d.By.Host
	}
	return row
}

func (e eventRow) has(words []string) bool {
	for _, word := range words {
		if !containsFold(e.Kind()+" "+e.Event+" "+e.Path+" "+e.Who+" "+e.By+" "+e.Reason, word) {
			return false
		}
	}
	return true
}

// newest returns a page of events, and the number of the last one if there may be older ones.
func (s *Server) newest(ctx context.Context, f eventFilter) (rows []eventRow, older uint64, err error) {
	words := strings.Fields(strings.ToLower(f.Words))
	list := f.query(eventPage)
	if len(words) == 0 {
		list.Limit = rowsShown + 1
	}
	if list.Before = f.Before; list.Before == 0 {
		list.Before = math.MaxUint64
	}
	for searched := 0; searched < eventsSearched; {
		result, err := s.events(ctx, list)
		if err != nil {
			return nil, 0, err
		}
		for _, e := range result.GetEvents() {
			if row := s.describeRow(e); row.has(words) {
				if len(rows) == rowsShown {
					return rows, rows[len(rows)-1].Number, nil
				}
				rows = append(rows, row)
			}
			list.Before = e.GetNumber()
		}
		if len(result.GetEvents()) < int(list.Limit) {
			return rows, 0, nil
		}
		searched += len(result.GetEvents())
	}
	return rows, list.GetBefore(), nil
}

func (s *Server) events(ctx context.Context, list *storepb.ListEvents) (*storepb.Result, error) {
	list.Viewer = viewer(ctx)
	return s.listings.ask.query(ctx, &storepb.Query{Query: &storepb.Query_ListEvents{ListEvents: list}})
}
