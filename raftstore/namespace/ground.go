package namespace

import (
	"bytes"
	"fmt"
	"slices"

	"lockfs/formats/lockfact"
)

// Guards, looks and events are for what somebody can judge. Everything else is data, and behaves as on a local
// disk. A name is a lock if a rule says so, if its content is of a format, or if the name was made exclusively
// and what is there says something of its maker, or nothing at all yet. A directory is one for the locks in it.

// ground is what makes a name a lock.
type ground int

const (
	isData ground = iota
	byRule
	byFormat
	byEmptiness
	byEvidence
	byLockInIt
)

// groundOf judges by the inode, which may be one that is not in the tree yet.
func (j *judge) groundOf(e *entry, in *inode) ground {
	if in.unlisted || in.kernelLocked {
		return isData
	}
	if rule := j.ruleFor(e); rule != nil {
		switch r := lockRule(rule); {
		case r.Format == lockfact.Data:
			return isData
		case r.Claims():
			return byRule
		}
	}
	switch {
	case in.facts != nil:
		return byFormat
	case !e.exclusive:
		return isData
	case in.isDir() && j.tree.lockFiles[in.ino] > 0:
		return byLockInIt
	case in.isDir() && j.tree.hasEntries(in.ino):
		return isData
	case len(in.content) == 0:
		return byEmptiness
	case in.evidence != "":
		return byEvidence
	}
	return isData
}

// isLock tells whether a name is a lock.
func (j *judge) isLock(e *entry, in *inode) bool {
	if in.isDir() {
		return j.groundOf(e, in) != isData
	}
	return e.lock
}

// because says for people what makes a name a lock; empty: it is data.
func (j *judge) because(e *entry, in *inode) string {
	switch j.groundOf(e, in) {
	case byRule:
		return fmt.Sprintf("the rule %s says so", j.ruleFor(e).GetPattern())
	case byFormat:
		return fmt.Sprintf("its content is of format %s", in.facts.Format)
	case byEmptiness:
		return "it was made exclusively and is empty"
	case byEvidence:
		return "it was made exclusively and " + in.evidence
	case byLockInIt:
		return "it was made exclusively and has a lock in it"
	}
	return ""
}

// mayBegin tells whether a content of no format may be the beginning of one: its writer is about to write the rest.
func mayBegin(format lockfact.Format, content []byte) bool {
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

// isCounter tells whether a content that looks like a pid file is a counter's next value: the one before was a
// number too, and no process.
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

// maxDigits is what a counter of 64 bits has at most.
const maxDigits = 20

// asCounted are the facts of a content that comes in the place of another one.
func asCounted(old *inode, content []byte, says *facts) *facts {
	if says != nil && says.Format == lockfact.PID && isCounter(old, content) {
		return nil
	}
	return says
}

// goesOn tells whether a holder has written more to its lock, as after a pid the name of its host.
func (j *judge) goesOn(e *entry, old, in *inode) bool {
	return old.ino == in.ino && len(old.content) > 0 && bytes.HasPrefix(in.content, old.content) && j.groundOf(e, in) != isData
}
