package page

import (
	"slices"
	"strings"
	"time"

	"lockfs/cluster/clusterpb"
	"lockfs/raftstore/lockjson"
	"lockfs/raftstore/storepb"
	"lockfs/raftstore/version"
)

// Host is a row in the list of hosts, and an element of /v1/hosts. Only administrators get certificates.
type Host struct {
	Name        string       `json:"name"`
	State       string       `json:"state"` // reachable; unreachable: no keepalives; left: all mounts have ended; none: no mount yet
	Since       moment       `json:"since,omitzero"`
	Sessions    uint32       `json:"sessions"`
	Silent      float64      `json:"silent_seconds"`       // longest time since a keepalive of its mounts
	Offset      float64      `json:"clock_offset_seconds"` // clock minus cluster time, as measured by its mount
	BootID      string       `json:"boot_id,omitempty"`
	Server      bool         `json:"server"`
	Version     string       `json:"version,omitempty"`        // of the programs of its server and mounts; several with commas
	Oldest      uint32       `json:"oldest_version,omitempty"` // oldest version supported by all its mounts; 0: no mount
	Newest      uint32       `json:"newest_version,omitempty"` // newest version, likewise
	Certificate *Certificate `json:"certificate,omitempty"`
}

// Certificate identifies a host.
type Certificate struct {
	Role       string `json:"role"` // server, client
	NotAfter   moment `json:"not_after"`
	Admitted   moment `json:"admitted"`
	Revoked    moment `json:"revoked,omitzero"`
	SquashRoot bool   `json:"squash_root,omitempty"` // the host's root has no rights of root
}

// Knows returns the cluster versions supported by its mounts as text.
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
				h.runs(session.GetProgram())
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
		hosts[i].Server = true
		hosts[i].runs(m.Version)
	}
	sortHosts(hosts)
	return hosts
}

// knows adds the versions of one more mount.
func (h *Host) knows(record *storepb.SessionRecord) {
	oldest, newest := max(record.GetOldestVersion(), 1), max(record.GetNewestVersion(), 1)
	if h.Oldest = max(h.Oldest, oldest); h.Newest == 0 || newest < h.Newest {
		h.Newest = newest
	}
}

// runs adds the version of one more program.
func (h *Host) runs(program string) {
	if program != "" && !slices.Contains(strings.Split(h.Version, ","), program) {
		h.Version = strings.TrimPrefix(h.Version+","+program, ",")
	}
}

func sortHosts(hosts []Host) {
	slices.SortStableFunc(hosts, func(a, b Host) int {
		if silent := btoi(b.State == hostUnreachable) - btoi(a.State == hostUnreachable); silent != 0 {
			return silent
		}
		return lockjson.ComparePaths(a.Name, b.Name)
	})
}
