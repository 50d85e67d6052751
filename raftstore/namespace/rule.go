package namespace

import (
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/glob"
	"lockfs/raftstore/storepb"
)

// MaxRules is how many rules there may be.
const MaxRules = 1000

// maxRule bounds what is kept of a rule, in bytes, so that a snapshot can always be read again.
const maxRule = glob.MaxLength + 1<<10

func lockRule(m *storepb.Rule) lockfact.Rule {
	return lockfact.Rule{
		Format: lockfact.Format(m.GetFormat()), StaleAfter: time.Duration(m.GetStaleAfter()),
		OnStale: lockfact.OnStale(m.GetOnStale()), Guard: lockfact.Guard(m.GetGuard()),
		HostTimeout: time.Duration(m.GetHostTimeout()), Holder: lockfact.Holder(m.GetHolder()),
	}
}

// CheckRule tells what is wrong with a rule, empty if nothing is.
func CheckRule(rule *storepb.Rule) string {
	if message := glob.Check(rule.GetPattern()); message != "" {
		return message
	}
	if proto.Size(rule) > maxRule {
		return "the rule is too long; only its pattern may have more than a few words"
	}
	if err := lockRule(rule).Validate(); err != nil {
		return err.Error()
	}
	return ""
}

// setRule adds or replaces a rule, and looks at every name: proportional to the size of the state.
func (ns *Namespace) setRule(rule *storepb.Rule) *storepb.Result {
	if message := CheckRule(rule); message != "" {
		return &storepb.Result{Code: storepb.Code_INVALID, Message: message}
	}
	if _, known := ns.rules.Get(rule.GetPattern()); !known && ns.rules.Len() >= MaxRules {
		return &storepb.Result{Code: storepb.Code_NO_SPACE, Message: "there are too many rules; see `lockfs rule list`"}
	}
	ns.rules.Set(rule.GetPattern(), rule)
	ns.judgeWhere(rule.GetPattern())
	return ok()
}

func (ns *Namespace) deleteRule(pattern string) *storepb.Result {
	if _, found := ns.rules.Delete(pattern); found {
		ns.judgeWhere(pattern)
	}
	return ok()
}

// judgeWhere judges the names again whose paths fit a pattern: its rule says nothing of any other.
func (ns *Namespace) judgeWhere(pattern string) {
	var fitting []*entry
	dir, above := uint64(0), "" // the path of a directory, with a slash at its end
	ns.byName.Scan(func(e *entry) bool {
		if e.parent != dir {
			dir, above = e.parent, strings.TrimSuffix(ns.path(e), e.name)
		}
		if glob.Match(pattern, above+e.name) {
			fitting = append(fitting, e)
		}
		return true
	})
	ns.judgeAgain(fitting...)
}

// ruleFor answers the rule for a name: of those whose pattern fits its path, the one with the longest
// pattern, and of equally long ones the last in order.
func (ns *Namespace) ruleFor(e *entry) (best *storepb.Rule) {
	if ns.rules.Len() == 0 {
		return nil
	}
	path := ns.path(e)
	ns.rules.Scan(func(pattern string, rule *storepb.Rule) bool {
		if len(pattern) >= len(best.GetPattern()) && glob.Match(pattern, path) {
			best = rule
		}
		return true
	})
	return best
}

func (ns *Namespace) hasHostTimeouts() bool {
	found := false
	ns.rules.Scan(func(_ string, rule *storepb.Rule) bool {
		found = rule.GetHostTimeout() > 0
		return !found
	})
	return found
}
