package page

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"time"

	"lockfs/raftstore/storepb"
)

// update is a message to the script. It has new and changed pieces as HTML by key, and the order of changed
// lists.
type update struct {
	Now    int64                 `json:"now"` // cluster time, milliseconds since the Unix epoch
	Blocks map[string]string     `json:"blocks,omitempty"`
	Lists  map[string]listUpdate `json:"lists,omitempty"`
	Error  string                `json:"error,omitempty"` // the page could not be built and does not change
}

type listUpdate struct {
	Order []string          `json:"order,omitempty"`
	Empty bool              `json:"empty,omitempty"` // all rows are gone
	Rows  map[string]string `json:"rows,omitempty"`
}

// sent is the state of the browser's page.
type sent struct {
	blocks map[string]any
	rows   map[string]map[string]any
	order  map[string][]string
}

func newSent() *sent {
	return &sent{blocks: map[string]any{}, rows: map[string]map[string]any{}, order: map[string][]string{}}
}

// quietTime is the longest pause between messages, to detect closed connections.
const quietTime = 10 * time.Second

// stream sends live updates of a page by server-sent events.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, k kind) {
	leave := s.enter(w, r)
	if leave == nil {
		return
	}
	defer leave()
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	before, last := newSent(), time.Time{}
	index, built := uint64(0), time.Time{}
	for tick := time.NewTicker(k.every); ; {
		if now, changed := s.changedSince(r, index); changed || time.Since(built) >= overviewTime {
			index, built = now, time.Now()
			u := s.next(r, k, before)
			if u != nil || time.Since(last) >= quietTime {
				if u == nil {
					u = &update{Now: int64(s.overview.now()) / 1e6}
				}
				if !send(w, out, u) {
					return
				}
				last = time.Now()
			}
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		case <-s.closing.Done():
			return
		}
	}
}

// changedSince reports whether a command has changed the state. Without a reply it returns true: the page
// then shows the failure.
func (s *Server) changedSince(r *http.Request, index uint64) (uint64, bool) {
	seen, err := s.listings.ask.query(r.Context(), &storepb.Query{Query: &storepb.Query_StatFs{StatFs: new(storepb.StatFs)}})
	return seen.GetIndex(), err != nil || seen.GetIndex() != index
}

// next builds a page and returns its changes; nil: none.
func (s *Server) next(r *http.Request, k kind, before *sent) *update {
	c, err := s.build(r, k)
	if err != nil {
		banner := s.overview.get(r.Context()).Banner
		return &update{Now: int64(s.overview.now()) / 1e6, Error: err.Error(), Blocks: s.changedBlocks([]piece{
			{"banner", "block-banner", banner}, {"trouble", "block-trouble", banner.Trouble()},
		}, before)}
	}
	u := &update{Blocks: s.changedBlocks(c.Blocks, before), Lists: s.changedLists(c.Lists, before)}
	if len(u.Blocks) == 0 && len(u.Lists) == 0 {
		return nil
	}
	u.Now = int64(s.overview.now()) / 1e6
	return u
}

func (s *Server) changedBlocks(blocks []piece, before *sent) map[string]string {
	changed := map[string]string{}
	for _, p := range blocks {
		if had, has := before.blocks[p.Key]; !has || !reflect.DeepEqual(had, p.Value) {
			before.blocks[p.Key] = p.Value
			changed[p.Key] = s.piece(p.Template, p.Value)
		}
	}
	return changed
}

func (s *Server) changedLists(lists []list, before *sent) map[string]listUpdate {
	changed := map[string]listUpdate{}
	for _, l := range lists {
		rows, order, u := make(map[string]any, len(l.Rows)), make([]string, len(l.Rows)), listUpdate{Rows: map[string]string{}}
		for i, p := range l.Rows {
			order[i], rows[p.Key] = p.Key, p.Value
			if had, has := before.rows[l.Name][p.Key]; !has || !reflect.DeepEqual(had, p.Value) {
				u.Rows[p.Key] = s.piece(p.Template, shownRow{p.Key, p.Value})
			}
		}
		if had, has := before.order[l.Name]; !has || !slices.Equal(had, order) {
			u.Order, u.Empty = order, len(order) == 0
		}
		before.rows[l.Name], before.order[l.Name] = rows, order
		if len(u.Rows) > 0 || len(u.Order) > 0 || u.Empty {
			changed[l.Name] = u
		}
	}
	return changed
}

func send(w http.ResponseWriter, out *http.ResponseController, value any) bool {
	line, err := json.Marshal(value)
	if err != nil {
		return false
	}
	_ = out.SetWriteDeadline(time.Now().Add(quietTime)) // disconnects clients which do not read
	if _, err := fmt.Fprintf(w, "data: %s\n\n", line); err != nil {
		return false
	}
	return out.Flush() == nil
}
