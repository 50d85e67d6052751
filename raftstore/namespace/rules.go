package namespace

import (
	"time"

	"google.golang.org/protobuf/proto"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/digest"
	"lockfs/raftstore/glob"
	"lockfs/raftstore/storepb"
)

// rules apply to names, whatever their files contain.
type rules struct {
	byPattern *digest.Map[string, *storepb.Rule]
	preview   *storepb.Rule // counts in place of the rule with its pattern; nil in the state
}

func newRules(d *digest.Digest) rules { return rules{byPattern: digest.NewMap(d, ruleValue)} }

func (rs *rules) are() bool { return rs.byPattern.Len() > 0 || rs.preview != nil }

// forPath returns the rule for a path: the one with the longest matching pattern, and the last in order of
// equally long ones.
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

// differBelow reports whether a rule can match names below one of two paths and not below the other.
func (rs *rules) differBelow(a, b string) (differ bool) {
	rs.byPattern.Scan(func(pattern string, _ *storepb.Rule) bool {
		differ = glob.Below(pattern, a) != glob.Below(pattern, b)
		return !differ
	})
	return differ
}

// longer reports whether pattern a takes precedence over b.
func longer(a, b string) bool { return len(a) > len(b) || len(a) == len(b) && a > b }

// MaxRules is the most rules.
const MaxRules = 1000

// maxRule bounds a rule, in bytes, which keeps snapshots readable.
const maxRule = glob.MaxLength + 1<<10

// lockRule parses a checked rule.
func lockRule(m *storepb.Rule) lockfact.Rule {
	r, _ := parseRule(m)
	return r
}

// parseRule returns the readable parts of a rule, and the error of the first invalid word.
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

// parseWord returns zero for an empty word.
func parseWord[T any](word string, parse func(string) (T, error)) (parsed T, err error) {
	if word == "" {
		return parsed, nil
	}
	return parse(word)
}

// CheckRule returns the error in a rule; empty: it is valid.
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
