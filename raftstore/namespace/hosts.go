package namespace

import (
	"fmt"

	"lockfs/raftstore/digest"
	"lockfs/raftstore/storepb"
)

// hosts are the machines with a present or past mount.
type hosts struct{ byName *digest.Map[string, *host] }

func newHosts(d *digest.Digest) hosts {
	return hosts{digest.NewMap(d, func(name string, h *host) digest.Value { return namedHost{name, h} })}
}

// maxHosts bounds the stored hosts without a session.
const maxHosts = 10_000

// host is a machine with a present or past mount. It is never modified once it is in a tree.
type host struct {
	bootID   string
	machine  string // that has the name, by its id in this boot; another machine may have had it before
	sessions int    // live ones
	since    int64  // time of the first of these sessions, or of the end of the last one
	left     bool   // its mount ended the last session
}

// namedHost is a host with its name, for the digest.
type namedHost struct {
	name string
	*host
}

// Record implements digest.Value.
func (h namedHost) Record() *storepb.Record {
	return &storepb.Record{Record: &storepb.Record_Host{Host: h.message(h.name)}}
}

func (h *host) message(name string) *storepb.HostRecord {
	return &storepb.HostRecord{Name: name, BootId: h.bootID, Sessions: uint32(h.sessions), Since: h.since, Left: h.left, Machine: h.machine}
}

func (hs *hosts) machineOf(name string) internedString {
	if h, known := hs.byName.Get(name); known {
		return intern(h.machine)
	}
	return internedString{}
}

// checkSameBoot refuses a session of a mounted host with another boot. It may be another machine of the same
// name, and the processes of the two are different.
func (hs *hosts) checkSameBoot(name, bootID string) *storepb.Result {
	h, known := hs.byName.Get(name)
	if !known || h.sessions == 0 || h.bootID == bootID {
		return nil
	}
	return &storepb.Result{Code: storepb.Code_BUSY, Message: fmt.Sprintf(
		"a host named %q is mounted that was booted another time: if it is this one before it crashed, its session ends soon;"+
			" if it is another machine, give one of them another --name", name)}
}

func (hs *hosts) listHosts() []*storepb.HostRecord {
	var hosts []*storepb.HostRecord
	hs.byName.Scan(func(name string, h *host) bool {
		hosts = append(hosts, h.message(name))
		return true
	})
	return hosts
}
