package namespace

import (
	"fmt"

	"lockfs/raftstore/codec"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
	"lockfs/raftstore/version"
)

// firstVersion is that at which a cluster begins, and that of a member or a snapshot that does not say.
const firstVersion = 1

// Version is that at which the cluster runs: nothing in the state or before it in the log is of a later one.
func (ns *Namespace) Version() uint32 { return ns.version }

// VersionsOf are those that a member's program knows.
func VersionsOf(m *storepb.Member) version.Range { return versionsOf(m) }

// versionsOf are those that somebody has told.
func versionsOf(m interface {
	GetOldestVersion() uint32
	GetNewestVersion() uint32
}) version.Range {
	return version.Range{Oldest: max(m.GetOldestVersion(), firstVersion), Newest: max(m.GetNewestVersion(), firstVersion)}
}

// MayRaise tells why the cluster cannot be raised to a version; empty: it can, for that is the next one, and all members and all
// mounts know it.
func (ns *Namespace) MayRaise(to uint32) (wrong string) {
	if to != ns.version+1 {
		return fmt.Sprintf("the cluster runs at version %d, so it cannot be raised to %d", ns.version, to)
	}
	if ns.members.Len() == 0 {
		return "no member is known yet"
	}
	ns.members.Scan(func(_ string, m *storepb.Member) bool {
		if known := VersionsOf(m); !known.Has(to) {
			wrong = fmt.Sprintf("the member %s knows version %s", m.GetName(), known)
		}
		return wrong == ""
	})
	if wrong != "" {
		return wrong
	}
	ns.sessions.byID.Scan(func(_ ids.Session, s *session) bool {
		if s.endedIndex == 0 && !s.versions.Has(to) {
			wrong = fmt.Sprintf("the mount on %s knows version %s", s.host, s.versions)
		}
		return wrong == ""
	})
	return wrong
}

func (ns *Namespace) setVersion(to uint32) *storepb.Result {
	if wrong := ns.MayRaise(to); wrong != "" {
		return &storepb.Result{Code: storepb.Code_INVALID, Message: wrong}
	}
	ns.version = to
	ns.emitDeed(nil, eventVersionRaised, "", fmt.Sprintf("version %d", to))
	return ok()
}

// checkVersions refuses a member that cannot be part of this cluster.
func (ns *Namespace) checkVersions(m *storepb.Member) *storepb.Result {
	if known := VersionsOf(m); !known.Has(ns.version) {
		return ns.unfit(m.GetName(), known)
	}
	return nil
}

// unfit refuses somebody whose program does not know the version of the cluster.
func (ns *Namespace) unfit(who string, known version.Range) *storepb.Result {
	next := "install a newer one there"
	if known.Oldest > ns.version {
		next = "update the other servers first"
	}
	return &storepb.Result{Code: storepb.Code_INVALID, Message: fmt.Sprintf(
		"the cluster runs at version %d, and the program of %s knows %s: %s", ns.version, who, known, next)}
}

// CheckVersion answers codec.ErrNewer or codec.ErrOlder unless a program that knows those versions can go on from this state.
func (ns *Namespace) CheckVersion(known version.Range) error { return CheckVersion(ns.version, known) }

// CheckVersion is the same for a cluster's version alone.
func CheckVersion(of uint32, known version.Range) error {
	why := codec.ErrNewer
	switch {
	case known.Has(of):
		return nil
	case of < known.Oldest:
		why = codec.ErrOlder
	}
	return fmt.Errorf("the cluster runs at version %d, and this program knows %s: %w", of, known, why)
}
