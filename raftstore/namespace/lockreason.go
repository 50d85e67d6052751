package namespace

import (
	"bytes"
	"fmt"
	"slices"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// Names are of three classes, see the package's documentation.

// lockReason is the reason that makes a name a lock.
type lockReason int

const (
	notLock lockReason = iota
	byRule
	byFormat
	byEvidence
	byContainedLock
)

// nameEvidence is the evidence in a name, and in its directory's name when the name was created. Renaming the
// directory later changes nothing.
type nameEvidence struct{ name, directory storepb.NameSays }

func (t *tree) nameEvidenceOf(name storepb.NameSays, directory ids.Inode) nameEvidence {
	s := nameEvidence{name: name}
	if e := t.nameOf(directory); e != nil {
		s.directory = e.says.name
	}
	return s
}

// evidence returns the evidence of an exclusive name, besides format and rules. The content of a file to
// which several hosts append is none.
func (j *evaluator) evidence(e *entry, in *inode) lockfact.Evidence {
	evidence := lockfact.Evidence{
		Name: lockfact.NameSays(e.says.name), Directory: lockfact.NameSays(e.says.directory), Size: len(in.content), Content: in.evidence,
	}
	if in.shared {
		evidence.Content = nil
	}
	if in.isDir() && j.tree.hasEntries(in.ino) {
		evidence.Size = dirSize
	}
	return evidence
}

// factsApply reports whether the facts of an inode count for one of its names.
func (j *evaluator) factsApply(e *entry, in *inode) bool {
	return in.facts != nil && j.evidence(e, in).Supports(in.facts.Facts, e.exclusive)
}

// whyLock evaluates by the given inode, which may not be in the tree yet.
func (j *evaluator) whyLock(e *entry, in *inode) lockReason {
	if in.unlisted || in.kernelLocked || in.manyNames {
		return notLock
	}
	if rule := j.ruleOn(e, in); rule != nil {
		switch r := lockRule(rule); {
		case r.Format == lockfact.Data:
			return notLock
		case r.Claims():
			return byRule
		}
	}
	return j.whyLockWithoutRules(e, in)
}

// whyLockWithoutRules is whyLock without rules.
func (j *evaluator) whyLockWithoutRules(e *entry, in *inode) lockReason {
	switch {
	case j.factsApply(e, in):
		return byFormat
	case !e.exclusive:
		return notLock
	case in.isDir() && j.tree.lockFiles[in.ino] > 0:
		return byContainedLock
	case in.isDir() && j.tree.hasEntries(in.ino):
		return notLock
	case j.evidence(e, in).IsEnough():
		return byEvidence
	}
	return notLock
}

// ruleOn returns the rule that applies to a name, or nil. A rule that removes does not apply to names that
// are data without it.
func (j *evaluator) ruleOn(e *entry, in *inode) *storepb.Rule {
	rule := j.ruleFor(e)
	if r := lockRule(rule); !r.Removes() || r.AnyFile || j.mayRemove(e, in) {
		return rule
	}
	return nil
}

// mayRemove reports whether the evidence of a lock is enough for a rule to remove it. A file that was emptied
// later does not count as empty: its writer is about to fill it again.
func (j *evaluator) mayRemove(e *entry, in *inode) bool {
	if j.factsApply(e, in) {
		return in.facts.Format != lockfact.PID || e.exclusive
	}
	if !e.exclusive || in.isDir() && j.tree.hasEntries(in.ino) {
		// lockfs removes only directories that contain nothing but locks (obstacle), so the name is evidence
		// enough.
		return e.exclusive && (j.tree.lockFiles[in.ino] > 0 || e.says.name == storepb.NameSays_SAYS_LOCK)
	}
	evidence := j.evidence(e, in)
	if in.version > e.createdAt {
		evidence.Size = max(1, evidence.Size)
	}
	return evidence.MayRemove()
}

// isLock reports whether a name is a lock. An emptied lock stays one as long as its guard works.
func (j *evaluator) isLock(e *entry, in *inode) bool {
	return e.lock || in.isDir() && j.whyLock(e, in) != notLock || j.isEmptiedLock(e, in)
}

// isEmptiedLock depends on the time, so no stored field may depend on it.
func (j *evaluator) isEmptiedLock(e *entry, in *inode) bool {
	before := j.beforeTruncation(e, in)
	return before != nil && j.whyLock(e, before) != notLock
}

// describeReason describes the reason that makes a name a lock; empty: it is none.
func (j *evaluator) describeReason(e *entry, in *inode) string {
	switch j.whyLock(e, in) {
	case byRule:
		return fmt.Sprintf("the rule %s says so", j.ruleOn(e, in).GetPattern())
	case byFormat:
		return fmt.Sprintf("its content is of format %s", in.facts.Format)
	case byEvidence:
		return fmt.Sprintf("it was created exclusively, %v", j.evidence(e, in))
	case byContainedLock:
		return "it was created exclusively and has a lock in it"
	}
	if j.isEmptiedLock(e, in) {
		return fmt.Sprintf("its content was of format %s, and is being replaced", e.known.Format)
	}
	return ""
}

// mayBeIncomplete reports whether a content of no format may be an incomplete content of a format.
func mayBeIncomplete(format lockfact.Format, content []byte) bool {
	if len(content) == 0 {
		return true
	}
	content = bytes.TrimLeft(content, " \t\r\n")
	switch {
	case len(content) == 0, format == lockfact.PID:
		return false
	case format == lockfact.Semaphore:
		return slices.ContainsFunc([]string{"pid=", "timestamp=", "tag="}, func(key string) bool {
			return bytes.HasPrefix(content, []byte(key)) || bytes.HasPrefix([]byte(key), content)
		})
	}
	if content[0] != '{' {
		return false
	}
	inside := bytes.TrimLeft(content[1:], " \t\r\n")
	return len(inside) == 0 || inside[0] == '"'
}

// isCounter reports whether a content like a pid file is the next value of a counter: the one before was a
// number too, and not of a process.
func isCounter(old *inode, content []byte) bool {
	return old != nil && old.facts == nil && isNumber(old.content) && isNumber(content)
}

func isNumber(content []byte) bool {
	digits := bytes.TrimSpace(content)
	if len(digits) == 0 || len(digits) > maxDigits {
		return false
	}
	return len(bytes.Trim(digits, "0123456789")) == 0
}

// maxDigits is the most digits of a 64-bit counter.
const maxDigits = 20

// factsUnlessCounter returns the facts of a content that replaces another one.
func factsUnlessCounter(old *inode, content []byte, says *facts) *facts {
	if says != nil && says.Format == lockfact.PID && isCounter(old, content) {
		return nil
	}
	return says
}

// isExtended reports whether the content of a lock was extended, such as a pid by the name of its host.
func (j *evaluator) isExtended(e *entry, old, in *inode) bool {
	return isAppended(old, in) && j.whyLock(e, in) != notLock
}

func isAppended(old, in *inode) bool {
	return old.ino == in.ino && len(old.content) > 0 && bytes.HasPrefix(in.content, old.content)
}

// isSameHolder reports whether a holder has turned its pid into a lock of another format by appending: pid=
// and then timestamp=.
func isSameHolder(old, in *inode, before, now *facts) bool {
	return isAppended(old, in) && before.Format == lockfact.PID && now.Format != lockfact.PID && before.PID == now.PID && before.Host == now.Host
}
