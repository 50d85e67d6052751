package admin

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockfs/cluster/page"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/raftstore/lockjson"
	"lockfs/raftstore/storepb"
)

// desk is the data of one poll.
type desk struct {
	at          time.Time // by the local clock
	clusterTime time.Time
	banner      page.Banner
	locks       []lockjson.Lock // those with problems first
	events      []*storepb.Event
	hosts       []host
	sessions    []sessionRow
	members     []nodeStatus
	err         error
}

// after fills gaps with the data of the previous poll.
func (d desk) after(before desk) desk {
	if d.err == nil {
		return d
	}
	d.locks, d.hosts, d.sessions = before.locks, before.hosts, before.sessions
	if d.members == nil {
		d.members, d.banner, d.clusterTime = before.members, before.banner, before.clusterTime
	}
	was := before.banner
	d.banner.Silent, d.banner.Alarms, d.banner.Spread, d.banner.Clocks = was.Silent, was.Alarms, was.Spread, was.Clocks
	return d
}

// views are the views of the screen; the caller owns the rows, which have a cell for each column.
var views = []struct {
	name, columns string
	rows          func(*desk) [][]string
}{
	{"locks", "PATH STATE WAITING HOLDER AGE EXPIRES TOKEN", lockRows},
	{"events", "TIME EVENT PATH DETAILS", eventRows},
	{"hosts", "NAME STATE SINCE MOUNTS SILENT CLOCK", hostRows},
	{"members", "NAME STATE TERM COMMIT APPLIED LAG VERSION ADDRESS", memberRows},
}

func lockRows(d *desk) (rows [][]string) {
	for _, l := range d.locks {
		rows = append(rows, []string{
			cmp.Or(cli.Word(l.Path), "(removed)"), lockState(l), lockWaiting(l), lockHolder(l),
			seconds(l.Age), lockExpiry(l, d.clusterTime), fmt.Sprint(l.Token),
		})
	}
	return rows
}

// byTrouble sorts locks with problems first.
func byTrouble(a, b lockjson.Lock) int {
	rank := func(l lockjson.Lock) int {
		switch {
		case l.State == "unreachable":
			return 0
		case l.State == "stale":
			return 1
		case l.Waiting > 0:
			return 2
		}
		return 3
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.Waiting, a.Waiting), strings.Compare(a.Path, b.Path))
}

// eventRows sorts the newest first.
func eventRows(d *desk) (rows [][]string) {
	for _, e := range slices.Backward(d.events) {
		details := strings.Join(eventDetails(e), "; ")
		if e.GetReason() != "" {
			details += ": " + cli.Text(e.GetReason())
		}
		path := ""
		if len(e.GetPath()) > 0 {
			path = cli.Word(string(e.GetPath()))
		}
		rows = append(rows, []string{time.Unix(0, e.GetTime()).UTC().Format(time.TimeOnly), e.GetEvent(), path, details})
	}
	return rows
}

func hostRows(d *desk) (rows [][]string) {
	for _, h := range d.hosts {
		silent, clock := "", ""
		for _, s := range d.sessions {
			if s.Host == h.Name {
				silent, clock = seconds(s.Silent), fmt.Sprintf("%+.3fs", s.ClockOffset)
			}
		}
		rows = append(rows, []string{cli.Word(h.Name), h.State, h.Since.Format(time.RFC3339), fmt.Sprint(h.Sessions), silent, clock})
	}
	return rows
}

func memberRows(d *desk) (rows [][]string) {
	committed := uint64(0)
	for _, n := range d.members {
		committed = max(committed, n.CommitIndex)
	}
	for _, n := range d.members {
		if n.Error != "" {
			rows = append(rows, []string{cli.Word(n.Name), n.State, "", "", "", "", "", n.Address + "  " + cli.Text(n.Error)})
			continue
		}
		rows = append(rows, []string{
			cli.Word(n.Name), n.State, fmt.Sprint(n.Term), fmt.Sprint(n.CommitIndex), fmt.Sprint(n.AppliedIndex),
			fmt.Sprint(committed - min(committed, n.AppliedIndex)),
			n.Version, n.Address,
		})
	}
	return rows
}
