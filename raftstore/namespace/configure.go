package namespace

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"lockfs/raftstore/storepb"
)

// setRule adds or replaces a rule. It visits every name, so it takes time in proportion to the state.
func (ns *Namespace) setRule(by *storepb.Caller, rule *storepb.Rule) *storepb.Result {
	if message := CheckRule(rule); message != "" {
		return &storepb.Result{Code: storepb.Code_INVALID, Message: message}
	}
	before, known := ns.rules.byPattern.Get(rule.GetPattern())
	if !known && ns.rules.byPattern.Len() >= MaxRules {
		return &storepb.Result{Code: storepb.Code_NO_SPACE, Message: "there are too many rules; see `lockfs rule list`"}
	}
	ns.rules.byPattern.Set(rule.GetPattern(), rule)
	if !proto.Equal(before, rule) { // else it is a repetition
		ns.emitAction(by, eventRuleSet, "", describeRule(rule))
	}
	ns.reevaluateMatching(rule.GetPattern())
	return ok()
}

func (ns *Namespace) deleteRule(by *storepb.Caller, pattern string) *storepb.Result {
	if _, found := ns.rules.byPattern.Delete(pattern); found {
		ns.emitAction(by, eventRuleDeleted, "", fmt.Sprintf("rule %q", pattern))
		ns.reevaluateMatching(pattern)
	}
	return ok()
}

func (ns *Namespace) setLimits(op *storepb.SetLimits) *storepb.Result {
	ns.tree.usage.limits.set(op)
	ns.budgets.set(op)
	if op.GetMaxSessions() != 0 {
		ns.sessions.most = op.GetMaxSessions()
	}
	if op != nil && op.LockDelay != nil {
		ns.sessions.lockDelay = max(0, op.GetLockDelay())
	}
	if op != nil && op.Leases != nil {
		ns.leases = op.GetLeases()
	}
	return ok()
}

// maxMember bounds the record of a member, in bytes, which keeps snapshots readable.
const maxMember = 4 << 10

func (ns *Namespace) setMember(by *storepb.Caller, m *storepb.Member) *storepb.Result {
	if m.GetId() == "" || m.GetName() == "" || proto.Size(m) > maxMember {
		return fail(storepb.Code_INVALID)
	}
	if refused := ns.checkVersions(m); refused != nil {
		return refused
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
	if _, known := ns.members.Set(m.GetId(), m); !known {
		what := "id " + m.GetId()
		if m.GetAddress() != "" {
			what += ", reached at " + m.GetAddress()
		}
		ns.emitAction(by, eventMemberAdded, m.GetName(), what)
	}
	return ok()
}

func (ns *Namespace) removeMember(by *storepb.Caller, id string) *storepb.Result {
	if m, found := ns.members.Delete(id); found {
		ns.emitAction(by, eventMemberRemoved, m.GetName(), "id "+m.GetId())
	}
	ns.clearAlarmsOf(by, id)
	return ok()
}
