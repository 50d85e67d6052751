package page

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"lockfs/raftstore/lockjson"
	"lockfs/raftstore/storepb"
)

const (
	// eventsShown is the number of newest events on the page, eventsSearched the number of events searched
	// for them.
	eventsShown    = 200
	eventsSearched = 2000
)

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

// graveEvents need an operator's attention.
var graveEvents = []string{
	"lock_stolen", "lock_stale", "removal_refused", "locked_file_removed", "host_unreachable", "alarm_raised", "join_refused", "host_revoked", "member_removed",
}

// deedEvents concern no lock, but may have a path.
var deedEvents = []string{"rule_set", "rule_deleted", "quota_set", "quota_deleted"}

func describeRow(e *storepb.Event) eventRow {
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
		row.By = fmt.Sprintf("uid %d on %s", d.By.UID, d.By.Host)
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

func (s *Server) newest(ctx context.Context, words []string) ([]eventRow, error) {
	last, err := s.events(ctx, &storepb.ListEvents{After: ^uint64(0)})
	if err != nil {
		return nil, err
	}
	var rows []eventRow
	for after := max(eventsSearched, last.GetLastEvent()) - eventsSearched; ; {
		result, err := s.events(ctx, &storepb.ListEvents{After: after, Limit: eventPage})
		if err != nil {
			return nil, err
		}
		for _, e := range result.GetEvents() {
			after = e.GetNumber()
			if row := describeRow(e); row.has(words) {
				rows = append(rows, row)
			}
		}
		if len(result.GetEvents()) < eventPage {
			break
		}
	}
	slices.Reverse(rows)
	return rows[:min(len(rows), eventsShown)], nil
}

func (s *Server) events(ctx context.Context, list *storepb.ListEvents) (*storepb.Result, error) {
	list.Viewer = viewer(ctx)
	return s.listings.ask.query(ctx, &storepb.Query{Query: &storepb.Query_ListEvents{ListEvents: list}})
}
