package page

import (
	"math"
	"slices"

	"lockfs/raftstore/storepb"
)

// absence is a period in which a host was unreachable, so its processes could not be seen.
type absence struct {
	host     string
	from, to moment
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
