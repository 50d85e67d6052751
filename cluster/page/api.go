package page

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"lockfs/raftstore/lockjson"
)

// openapi.json describes the JSON answers.

type apiLockList struct {
	Time  moment `json:"time"`  // cluster time
	Found int    `json:"found"` // matches of the filter; the list has at most limit of them
	Locks []Lock `json:"locks"`
}

// mostLocks limits the locks in one answer, defaultLocks an answer without a requested limit.
const (
	mostLocks    = 10_000
	defaultLocks = 500
)

func (s *Server) apiLocks(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	limit := defaultLocks
	if given := q.Get("limit"); given != "" {
		var err error
		if limit, err = strconv.Atoi(given); err != nil || limit < 1 || limit > mostLocks {
			writeJSON(w, http.StatusBadRequest, apiError{fmt.Sprintf("limit: it is a number from 1 to %d", mostLocks)})
			return
		}
	}
	now := s.overview.now()
	all, err := s.listings.get(r.Context(), now)
	if err != nil {
		s.failWith(w, r, err)
		return
	}
	answer := apiLockList{Time: now, Locks: []Lock{}}
	found := parseSelection(q).of(all.locks)
	answer.Locks, answer.Found = append(answer.Locks, found[:min(limit, len(found))]...), len(found)
	writeJSON(w, http.StatusOK, answer)
}

func (s *Server) apiLock(w http.ResponseWriter, r *http.Request) {
	d, err := s.lock(r.Context(), r.PathValue("path"))
	if err != nil {
		s.failWith(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, d)
}

func (s *Server) apiHosts(w http.ResponseWriter, r *http.Request) {
	hosts, err := s.hosts(r.Context())
	if err != nil {
		s.failWith(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, map[string][]Host{"hosts": hosts})
}

func (s *Server) apiMembers(w http.ResponseWriter, r *http.Request) {
	o := s.overview.get(r.Context())
	if !o.Banner.Health.Confirmed && len(o.Members) == 0 {
		s.failWith(w, r, errNoAnswer)
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"leader": o.Banner.Leader, "members": o.Members})
}

// apiEvents sends events from a number on, one a line, and continues with new ones unless the request
// disables this. A request for server-sent events gets those, and continues from its last position.
func (s *Server) apiEvents(w http.ResponseWriter, r *http.Request) {
	asked := cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after"), "0")
	after, err := strconv.ParseUint(asked, 10, 64)
	if err != nil {
		writeJSON(w, http.StatusBadRequest, apiError{"after: it is the number of an event"})
		return
	}
	follow, filter := r.URL.Query().Get("follow") != "false", parseEventFilter(r.URL.Query())
	format, kind := "%[2]s\n", "application/x-ndjson"
	if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		format, kind = "id: %[1]d\ndata: %[2]s\n\n", "text/event-stream"
	}
	leave := s.enter(w, r)
	if leave == nil {
		return
	}
	defer leave()
	out := http.NewResponseController(w)
	for begun := false; ; begun = true {
		list := filter.query(eventPage)
		list.After, list.Wait = after, follow && begun
		result, err := s.events(r.Context(), list)
		switch {
		case r.Context().Err() != nil, s.closing.Err() != nil:
			return
		case err != nil && !begun:
			s.failWith(w, r, err)
			return
		case err != nil: // a client reconnects and continues from its last event
			return
		}
		if !begun {
			w.Header().Set("Content-Type", kind)
		}
		for _, e := range result.GetEvents() {
			after = e.GetNumber()
			if _, err := fmt.Fprintf(w, format, after, lockjson.EventLine(e)); err != nil {
				return
			}
		}
		if err := out.Flush(); err != nil || len(result.GetEvents()) < eventPage && !follow {
			return
		}
		if len(result.GetEvents()) < eventPage {
			after = max(after, result.GetLastEvent()) // the others are hidden from this caller
		}
	}
}
