package page

import (
	"context"
	"math"
	"slices"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/lockjson"
	"lockfs/raftstore/storepb"
)

// absence is a period in which a host was unreachable, so its processes could not be seen.
type absence struct {
	host     string
	from, to moment
}

// absences returns the absences in the last events, in order. One without an end ends in the far future.
func (s *Server) absences(ctx context.Context) ([]absence, error) {
	result, err := s.events(ctx, &storepb.ListEvents{
		Before: math.MaxUint64, Kinds: []string{"host_unreachable", "host_back"}, Limit: eventPage,
	})
	if err != nil {
		return nil, err
	}
	return absencesIn(result.GetEvents()), nil
}

// absencesIn expects the newest event first.
func absencesIn(events []*storepb.Event) (all []absence) {
	open := make(map[string]int) // place in all by host
	for _, e := range slices.Backward(events) {
		host, at := e.GetHost(), moment(e.GetTime())
		i, is := open[host]
		switch {
		case e.GetEvent() == "host_unreachable" && !is:
			open[host] = len(all)
			all = append(all, absence{host, at, math.MaxInt64})
		case e.GetEvent() == "host_back" && is:
			all[i].to = at
			delete(open, host)
		}
	}
	return all
}

// loseSight keeps the absences of the host of a hold.
func (h *hold) loseSight(all []absence) {
	for _, a := range all {
		if h.host != "" && a.host == h.host && a.from < h.to && a.to > h.from {
			h.absent = append(h.absent, a)
		}
	}
}

// hostOf returns the host of a lock which lives as long as a process there; empty: another lock.
func hostOf(e lockjson.Event) string {
	format, err := lockfact.ParseFormat(e.Format)
	if err != nil || !(lockfact.Facts{Format: format, PID: int(e.PID)}).ByProcess() {
		return ""
	}
	return e.Host
}
