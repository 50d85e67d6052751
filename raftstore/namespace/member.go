package namespace

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"lockfs/raftstore/storepb"
)

// maxMember bounds what is kept of a member, in bytes, so that a snapshot can always be read again.
const maxMember = 4 << 10

func (ns *Namespace) setMember(m *storepb.Member) *storepb.Result {
	if m.GetId() == "" || m.GetName() == "" || proto.Size(m) > maxMember {
		return fail(storepb.Code_INVALID)
	}
	var taken *storepb.Member
	ns.members.Scan(func(_ string, other *storepb.Member) bool {
		if other.GetName() == m.GetName() && other.GetId() != m.GetId() {
			taken = other
		}
		return taken == nil
	})
	if taken != nil {
		return &storepb.Result{Code: storepb.Code_BUSY, Message: fmt.Sprintf(
			"a member named %q is there already, with another data directory (id %s)", m.GetName(), taken.GetId())}
	}
	ns.members.Set(m.GetId(), m)
	return ok()
}

// Members answers the members in the order of their ids.
func (ns *Namespace) Members() []*storepb.Member {
	members := make([]*storepb.Member, 0, ns.members.Len())
	ns.members.Scan(func(_ string, m *storepb.Member) bool {
		members = append(members, m)
		return true
	})
	return members
}

func (ns *Namespace) setLimits(op *storepb.SetLimits) *storepb.Result {
	ns.limits.set(op)
	if op.GetMaxSessions() != 0 {
		ns.maxSessions = op.GetMaxSessions()
	}
	if op != nil && op.LockDelay != nil {
		ns.lockDelay = max(0, op.GetLockDelay())
	}
	return ok()
}

// Member answers nil for an id that is not known.
func (ns *Namespace) Member(id string) *storepb.Member {
	m, _ := ns.members.Get(id)
	return m
}
