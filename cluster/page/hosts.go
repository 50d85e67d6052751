package page

import (
	"slices"
	"strings"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/raftstore/storepb"
	"lockfs/raftstore/version"
)

// Host is a row of the hosts, and an element of what /v1/hosts answers. Who is no administrator is not told of certificates.
type Host struct {
	Name        string       `json:"name"`
	State       string       `json:"state"` // reachable; unreachable: its mounts fell silent; left: they have ended; none: it never had one
	Since       moment       `json:"since,omitzero"`
	Sessions    uint32       `json:"sessions"`
	Silent      float64      `json:"silent_seconds"`       // the longest of its mounts, since it last renewed its session
	Offset      float64      `json:"clock_offset_seconds"` // how far its clock is ahead of cluster time, as its mount measured it
	BootID      string       `json:"boot_id,omitempty"`
	Server      bool         `json:"server"`
	Version     string       `json:"version,omitempty"`        // of a server's program; mounts tell which versions of a cluster theirs know
	Oldest      uint32       `json:"oldest_version,omitempty"` // of those that the programs of all its mounts know; 0: it has none
	Newest      uint32       `json:"newest_version,omitempty"` // likewise
	Certificate *Certificate `json:"certificate,omitempty"`
}

// Certificate is by what a host is known.
type Certificate struct {
	Role       string `json:"role"` // server, client
	NotAfter   moment `json:"not_after"`
	Admitted   moment `json:"admitted"`
	Revoked    moment `json:"revoked,omitzero"`
	SquashRoot bool   `json:"squash_root,omitempty"` // its root is nobody
}

// Knows is which versions of a cluster its mounts know, for people.
func (h Host) Knows() string {
	if h.Newest == 0 {
		return ""
	}
	return version.Range{Oldest: h.Oldest, Newest: h.Newest}.String()
}

const (
	hostReachable   = "reachable"
	hostUnreachable = "unreachable"
	hostLeft        = "left"
	hostNone        = "none"
)

func describeHosts(records []*storepb.HostRecord, sessions []*clusterpb.Session, members []Member) []Host {
	hosts := make([]Host, 0, len(records))
	for _, record := range records {
		h := Host{
			Name: record.GetName(), State: hostUnreachable, Since: moment(record.GetSince()), Sessions: record.GetSessions(), BootID: record.GetBootId(),
		}
		switch {
		case record.GetSessions() > 0:
			h.State = hostReachable
		case record.GetLeft():
			h.State = hostLeft
		}
		for _, session := range sessions {
			if record := session.GetRecord(); record.GetHost() == h.Name {
				h.knows(record)
				h.Silent = max(h.Silent, time.Duration(session.GetSilent()).Round(time.Second).Seconds())
				h.Offset = time.Duration(session.GetClockOffset()).Round(time.Millisecond).Seconds()
			}
		}
		hosts = append(hosts, h)
	}
	for _, m := range members {
		i := slices.IndexFunc(hosts, func(h Host) bool { return h.Name == m.Name })
		if i < 0 {
			hosts = append(hosts, Host{Name: m.Name, State: hostNone})
			i = len(hosts) - 1
		}
		hosts[i].Server, hosts[i].Version = true, m.Version
	}
	sortHosts(hosts)
	return hosts
}

// knows notes what one more of its mounts knows.
func (h *Host) knows(record *storepb.SessionRecord) {
	oldest, newest := max(record.GetOldestVersion(), 1), max(record.GetNewestVersion(), 1)
	if h.Oldest = max(h.Oldest, oldest); h.Newest == 0 || newest < h.Newest {
		h.Newest = newest
	}
}

// sortHosts has those first that are silent.
func sortHosts(hosts []Host) {
	slices.SortStableFunc(hosts, func(a, b Host) int {
		if silent := btoi(b.State == hostUnreachable) - btoi(a.State == hostUnreachable); silent != 0 {
			return silent
		}
		return strings.Compare(a.Name, b.Name)
	})
}
