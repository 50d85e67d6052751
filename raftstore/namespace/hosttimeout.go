package namespace

import "fmt"

// hostTimeoutOf returns nil for a lock that waits for its silent host forever, or does not live as long as a
// process.
func hostTimeoutOf(g effectiveState) *hostTimeout {
	if g.hostTimeout <= 0 || !g.ByProcess() || g.process == nil || g.gone != nil {
		return nil
	}
	return &hostTimeout{watcher{g.Host, g.process.bootID.String(), g.process.pidNamespace}, g.hostTimeout}
}

// eachTimedOut visits the locks with an expired host timeout, until visit returns false. It skips all locks
// of a watched pid namespace at once.
func (j *evaluator) eachTimedOut(now int64, visit func(*entry, *staleness) bool) {
	for going, from := true, (watcher{}); going; {
		var first *entry
		j.tree.timeouts.Ascend(&entry{timeout: &hostTimeout{watcher: from}}, func(e *entry) bool {
			first = e
			return false
		})
		if first == nil {
			return
		}
		going, from = j.visitTimedOut(first, now, visit), first.timeout.next()
	}
}

// visitTimedOut visits the locks of one pid namespace, of which first is the first entry.
func (j *evaluator) visitTimedOut(first *entry, now int64, visit func(*entry, *staleness) bool) (going bool) {
	of := first.timeout.watcher
	h, known := j.hosts.byName.Get(of.host)
	if !known || h.sessions > 0 && j.sessions.isSeen(of) {
		return true
	}
	going = true
	j.tree.timeouts.Ascend(first, func(e *entry) bool {
		if e.timeout.watcher != of || now-h.since <= int64(e.timeout.after) {
			return false
		}
		if in, found := j.tree.inode(e.ino); found {
			g := j.effective(e, in)
			reason := fmt.Sprintf("its host %s has been silent for more than %v (rule %s)", of.host, e.timeout.after, g.pattern)
			going = visit(e, &staleness{reason: reason, since: j.time, ofCreator: g.byCreator})
		}
		return going
	})
	return going
}
