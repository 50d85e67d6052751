package formats

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"

	"lockfs/formats/internal/lockfile"
	"lockfs/formats/lockfact"
)

// Check returns the state of the lock at path, evaluated as by [Wait], and changes nothing. The rule sets the
// expected format, and the stale timeout of a semaphore outside of mounts of lockfs. The error is
// fs.ErrNotExist only if the directory is missing.
//
// On a mount of lockfs, the guard counts every read as a look at the lock. So do not call Check between
// evaluating a lock and removing or replacing it.
func Check(path string, rule Rule) (Status, error) {
	for range checkRetries {
		s, err := check(path, rule)
		if !errors.Is(err, errReplaced) {
			return s, err
		}
	}
	return Status{State: Held, Format: None, Reason: "it changes hands all the time"}, nil
}

// checkRetries is how often Check starts again after the lock was replaced meanwhile.
const checkRetries = 5

var errReplaced = errors.New("the lock is another one by now")

func check(path string, rule Rule) (Status, error) {
	named, err := os.Lstat(path)
	if err != nil {
		state, _, err := absent(path, err)
		return Status{State: state, Format: None}, err
	}
	f, content, err := lockfile.Open(path)
	switch {
	case errors.Is(err, lockfile.ErrNotRegular):
		return checkOther(path, named, rule), nil
	case errors.Is(err, fs.ErrPermission):
		return Status{State: Held, Format: None, Acquired: named.ModTime(), Reason: "it may not be read"}, nil
	case err != nil:
		state, _, err := absent(path, lockfile.Gone(err))
		return Status{State: state, Format: None}, err
	}
	defer func() { _ = f.Close() }()
	s := describe(content, named.ModTime(), rule)
	s.mounted(func(name string) string { return lockfile.AttributeOf(f, name) })
	if s.Expires.Nanosecond() == int(lockfact.Cut) { // from a timestamp in whole seconds
		s.Expires = s.Expires.Truncate(time.Second)
	}
	s.explain(content, named.ModTime(), rule)
	opened, err := f.Stat()
	if err != nil {
		return Status{}, errReplaced
	}
	if now, err := os.Lstat(path); err != nil || !os.SameFile(now, opened) || !os.SameFile(now, named) {
		return Status{}, errReplaced // the attributes may be of either file
	}
	return s, nil
}

// checkOther describes anything but a regular file. It is stale only on a mount of lockfs.
func checkOther(path string, named fs.FileInfo, rule Rule) Status {
	s := Status{State: Held, Format: None, Acquired: named.ModTime()}
	if rule.Format != 0 {
		s.State = Invalid
	}
	s.mounted(func(name string) string {
		if named.Mode()&fs.ModeSymlink != 0 {
			return "" // the attribute would be the target's
		}
		return lockfile.Attribute(path, name)
	})
	s.Reason = "it is no file, and held for as long as it is there"
	return s
}

// describe evaluates a content as written on this host.
func describe(content []byte, mtime time.Time, rule Rule) Status {
	const noMtime = 0 // age alone makes nothing stale here
	facts := Rule{StaleAfter: rule.StaleAfter}.Govern(FactsOf(content, Origin{}), noMtime)
	s := Status{Format: facts.Format, Holder: facts.Holder, PID: facts.PID, Acquired: mtime, Empty: len(content) == 0}
	if facts.ExpiresAt != 0 {
		s.Expires = time.Unix(0, facts.ExpiresAt).UTC()
	}
	s.State, _ = judgeHere(content, facts)
	if facts.IssuedAt != 0 {
		s.Acquired = time.Unix(0, facts.IssuedAt)
	}
	if k := kindOf(facts.Format); k != nil && k.details != nil {
		k.details(content, &s)
	}
	s.Acquired = s.Acquired.UTC()
	return s
}

// mounted replaces facts of the content by those of a mount of lockfs.
func (s *Status) mounted(attribute func(name string) string) {
	state := attribute("state")
	if state == "" {
		return
	}
	s.State = State(state)
	s.Format, _ = ParseFormat(attribute("format"))
	s.Holder, s.Host = attribute("holder"), attribute("host")
	s.PID, _ = strconv.Atoi(attribute("pid"))
	s.Token, _ = strconv.ParseUint(attribute("token"), 10, 64)
	if at, err := time.Parse(time.RFC3339Nano, attribute("acquired")); err == nil {
		s.Acquired = at
	}
	s.Expires = time.Time{}
	if at, err := time.Parse(time.RFC3339Nano, attribute("expires")); err == nil {
		s.Expires = at
	}
}

// explain sets the reason. A content is Invalid, unless stale, if it breaks the rules of the rule's format or
// of its own.
func (s *Status) explain(content []byte, mtime time.Time, rule Rule) {
	format := rule.Format
	if format == 0 {
		format = Detect(content)
	}
	_, problem := factsOf(format, content, Origin{})
	if problem != nil && (rule.Format != 0 || format != None) && s.State != Stale {
		s.State = Invalid
	}
	k := kindOf(s.Format)
	byProcess := k != nil && k.dead != nil
	moment := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	switch {
	case s.Empty:
		s.Reason = fmt.Sprintf("empty since %s: its creator may have crashed", moment(mtime))
	case s.State == Invalid:
		s.Reason = fmt.Sprintf("not a valid %s lock: %v", format, problem)
	case s.State == Unreachable:
		s.Reason = "its host is silent, and may be alive"
	case s.State == Stale && byProcess:
		s.Reason = fmt.Sprintf("its process %d is gone", s.PID)
	case s.State == Stale && !s.Expires.IsZero():
		s.Reason = "stale since " + moment(s.Expires)
	case s.State == Stale:
		s.Reason = "its holder is gone"
	case !s.Expires.IsZero():
		s.Reason = fmt.Sprintf("stale at %s unless it is renewed", moment(s.Expires))
	case byProcess:
		s.Reason = fmt.Sprintf("held for as long as its process %d lives", s.PID)
	case s.Format == None:
		s.Reason = "of no known format, so time does not make it stale"
	default:
		s.Reason = "it never expires"
	}
}
