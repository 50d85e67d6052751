package namespace

import (
	"time"

	"google.golang.org/protobuf/proto"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/digest"
	"lockfs/raftstore/glob"
	"lockfs/raftstore/storepb"
)

// rules is what counts for names, whatever is in their files.
type rules struct {
	byPattern *digest.Map[string, *storepb.Rule]
	preview   *storepb.Rule // counts in place of the one with its pattern; nil in the state
}

func newRules(d *digest.Digest) rules { return rules{byPattern: digest.NewMap(d, ruleValue)} }

// are reports whether there are any.
func (rs *rules) are() bool { return rs.byPattern.Len() > 0 || rs.preview != nil }

// forPath answers the rule for a path: of those whose pattern fits it, the one with the longest
// pattern, and of equally long ones the last in order.
func (rs *rules) forPath(path string) (best *storepb.Rule) {
	rs.byPattern.Scan(func(pattern string, rule *storepb.Rule) bool {
		if pattern != rs.preview.GetPattern() && len(pattern) >= len(best.GetPattern()) && glob.Match(pattern, path) {
			best = rule
		}
		return true
	})
	if p := rs.preview; p != nil && (best == nil || longer(p.GetPattern(), best.GetPattern())) && glob.Match(p.GetPattern(), path) {
		return p
	}
	return best
}

// differBelow reports whether a rule counts for some names below a directory of one path, and would not below one of another path.
func (rs *rules) differBelow(a, b string) (differ bool) {
	rs.byPattern.Scan(func(pattern string, _ *storepb.Rule) bool {
		differ = glob.Below(pattern, a) != glob.Below(pattern, b)
		return !differ
	})
	return differ
}

// longer orders patterns: the last of those that fit counts.
func longer(a, b string) bool { return len(a) > len(b) || len(a) == len(b) && a > b }

// MaxRules is how many rules there may be.
const MaxRules = 1000

// maxRule bounds what is kept of a rule, in bytes, so that a snapshot can always be read again.
const maxRule = glob.MaxLength + 1<<10

// lockRule reads a rule that was checked.
func lockRule(m *storepb.Rule) lockfact.Rule {
	r, _ := parseRule(m)
	return r
}

// parseRule answers what it can read, and what is wrong with the first word that it cannot.
func parseRule(m *storepb.Rule) (lockfact.Rule, error) {
	r := lockfact.Rule{StaleAfter: time.Duration(m.GetStaleAfter()), HostTimeout: time.Duration(m.GetHostTimeout()), AnyFile: m.GetAnyFile()}
	var wrong [4]error
	r.Format, wrong[0] = parseWord(m.GetFormat(), lockfact.ParseFormat)
	r.OnStale, wrong[1] = parseWord(m.GetOnStale(), lockfact.ParseOnStale)
	r.Guard, wrong[2] = parseWord(m.GetGuard(), lockfact.ParseGuard)
	r.Holder, wrong[3] = parseWord(m.GetHolder(), lockfact.ParseHolder)
	for _, err := range wrong {
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

// parseWord answers zero for a word that is not set.
func parseWord[T any](word string, parse func(string) (T, error)) (parsed T, err error) {
	if word == "" {
		return parsed, nil
	}
	return parse(word)
}

// CheckRule tells what is wrong with a rule, empty if nothing is.
func CheckRule(rule *storepb.Rule) string {
	if message := glob.Check(rule.GetPattern()); message != "" {
		return message
	}
	if proto.Size(rule) > maxRule {
		return "the rule is too long; only its pattern may have more than a few words"
	}
	parsed, err := parseRule(rule)
	if err == nil {
		err = parsed.Validate()
	}
	if err != nil {
		return err.Error()
	}
	return ""
}
