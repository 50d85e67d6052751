package cluster

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"lockfs/cluster/clusterpb"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
	"lockfs/raftstore/storepb"
)

// rosters makes the roster by which mounts verify servers.
type rosters struct {
	mu      sync.Mutex
	at      ids.Index // LastRevocation of the state behind revoked
	revoked []*storepb.Admission
}

// mostRevoked limits the revoked keys in a roster: the latest ones, servers first.
const mostRevoked = 1000

// of returns the roster of a state; nil: it has no CA or no members yet.
func (r *rosters) of(ns *namespace.Namespace, now time.Time) *clusterpb.Roster {
	roster := new(clusterpb.Roster)
	for _, member := range ns.Members() {
		host := ns.Admission(member.GetName())
		if host.GetRole() == storepb.Role_SERVER && host.GetRevoked() == 0 && !member.GetLeaving() {
			roster.Members = append(roster.Members, &clusterpb.Roster_Member{Name: host.GetName(), KeyHash: host.GetKeyHash()})
		}
	}
	for _, authority := range ns.Authorities() {
		roster.Authorities = append(roster.Authorities, authority.GetCertificate())
	}
	if len(roster.Members) == 0 || len(roster.Authorities) == 0 {
		return nil
	}
	slices.SortFunc(roster.Members, func(a, b *clusterpb.Roster_Member) int { return cmp.Compare(a.GetName(), b.GetName()) })
	for _, host := range r.revokedHosts(ns) {
		if host.GetNotAfter() > now.UnixNano() {
			roster.Revoked = append(roster.Revoked, host.GetKeyHash())
		}
	}
	roster.Version = versionOf(roster)
	return roster
}

// versionOf is a hash of a roster.
func versionOf(roster *clusterpb.Roster) uint64 {
	content, err := proto.MarshalOptions{Deterministic: true}.Marshal(roster)
	if err != nil {
		return 1 // never: none of its fields can fail
	}
	sum := sha256.Sum256(content)
	return max(1, binary.BigEndian.Uint64(sum[:8]))
}

// revokedHosts rereads all hosts after a revocation.
func (r *rosters) revokedHosts(ns *namespace.Namespace) []*storepb.Admission {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := ns.LastRevocation(); at != r.at {
		r.at, r.revoked = at, nil
		ns.EachAdmission(func(host *storepb.Admission) bool {
			if host.GetRevoked() != 0 {
				r.revoked = append(r.revoked, host)
			}
			return true
		})
		slices.SortStableFunc(r.revoked, func(a, b *storepb.Admission) int {
			return cmp.Or(cmp.Compare(b.GetRole(), a.GetRole()), cmp.Compare(b.GetRevoked(), a.GetRevoked()))
		})
		r.revoked = slices.Clip(r.revoked[:min(len(r.revoked), mostRevoked)])
	}
	return r.revoked
}
