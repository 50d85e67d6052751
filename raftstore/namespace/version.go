package namespace

import (
	"fmt"

	"lockfs/raftstore/codec"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
	"lockfs/raftstore/version"
)

// firstVersion is the version of a new cluster, and the default of a member or snapshot.
const firstVersion = 1

// Version returns the version at which the cluster runs: nothing in the state or earlier in the log is of a
// later version.
func (ns *Namespace) Version() uint32 { return ns.version }

// VersionsOf returns the versions known to a member's program.
func VersionsOf(m *storepb.Member) version.Range { return versionsOf(m) }

// versionsOf returns the versions in a message.
func versionsOf(m interface {
	GetOldestVersion() uint32
	GetNewestVersion() uint32
}) version.Range {
	return version.Range{Oldest: max(m.GetOldestVersion(), firstVersion), Newest: max(m.GetNewestVersion(), firstVersion)}
}

// MayRaise returns the reason why the cluster cannot be raised to a version. It is empty if this is the next
// version, and all members and all mounts know it.
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
	ns.emitAction(nil, eventVersionRaised, "", fmt.Sprintf("version %d", to))
	return ok()
}

func (ns *Namespace) checkVersions(m *storepb.Member) *storepb.Result {
	if known := VersionsOf(m); !known.Has(ns.version) {
		return ns.unfit(m.GetName(), known)
	}
	return nil
}

// unfit refuses a member or a mount whose program lacks the cluster's version.
func (ns *Namespace) unfit(who string, known version.Range) *storepb.Result {
	next := "install a newer one there"
	if known.Oldest > ns.version {
		next = "update the other servers first"
	}
	return &storepb.Result{Code: storepb.Code_INVALID, Message: fmt.Sprintf(
		"the cluster runs at version %d, and the program of %s knows %s: %s", ns.version, who, known, next)}
}

// CheckVersion returns codec.ErrNewer or codec.ErrOlder unless a program with those versions can continue
// from this state.
func (ns *Namespace) CheckVersion(known version.Range) error { return CheckVersion(ns.version, known) }

// CheckVersion checks a cluster's version alone.
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
