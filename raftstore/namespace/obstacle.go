package namespace

import (
	"fmt"

	"lockfs/formats/lockfact"
)

// maxLockEntries is the most entries of a directory lockfs removes with them.
const maxLockEntries = 16

// obstacle returns the reason why lockfs does not remove a stale lock due for removal; empty: none.
func (j *evaluator) obstacle(in *inode, g effectiveState, stale *staleness) string {
	if j.hasAdvisories(in) {
		return "a program has or wants a flock or fcntl lock of it"
	}
	if !j.tree.isFull(in) {
		return ""
	}
	if !g.byCreator || !stale.ofCreator {
		return "it is a directory that has entries"
	}
	entries := j.tree.entriesUpTo(in.ino, maxLockEntries+1)
	if len(entries) > maxLockEntries {
		return fmt.Sprintf("it is a directory that has more than %d entries", maxLockEntries)
	}
	for _, inside := range entries {
		file, found := j.tree.inode(inside.ino)
		switch {
		case !found || !j.isLockOf(inside, file, g.process):
			return fmt.Sprintf("%q in it is not a lock of the process that made it", inside.name)
		case j.hasAdvisories(file):
			return fmt.Sprintf("a program has or wants a flock or fcntl lock of %q in it", inside.name)
		}
	}
	return ""
}

// isLockOf reports whether a file is a lock of a process.
func (j *evaluator) isLockOf(e *entry, in *inode, p *process) bool {
	if in.isDir() || j.whyLock(e, in) == notLock || p == nil {
		return false
	}
	g := j.effective(e, in)
	return g.ByProcess() && g.process != nil && g.process.processID == p.processID
}

// staysBecause returns the reason why a stale lock stays although its format or a rule removes stale locks.
// It is empty if lockfs is about to remove the lock, or never removes such a lock.
func (j *evaluator) staysBecause(e *entry, in *inode, g effectiveState) string {
	switch {
	case e.stale == nil:
		return ""
	case g.OnStale == lockfact.Remove:
		return j.obstacle(in, g, e.stale)
	case g.Format == lockfact.PID && !g.byCreator && g.gone != nil && !g.gone.byCrash && e.exclusive && in.facts.OnStale == lockfact.Remove:
		return "its process may have left it on purpose: no signal is known to have ended the process"
	}
	return ""
}
