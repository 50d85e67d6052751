package namespace

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/glob"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// previewRule returns the matching names of a rule, with the rule's effect on each.
func (r queryEngine) previewRule(q *storepb.PreviewRule) *storepb.Result {
	if q.GetViewer() == nil {
		return missingViewer()
	}
	if message := CheckRule(q.GetRule()); message != "" {
		return &storepb.Result{Code: storepb.Code_INVALID, Message: message}
	}
	under := &evaluator{r.state}
	under.rules.preview = q.GetRule()
	limit, view := page(q.GetLimit()), queryEngine{under}.viewOf(q.GetViewer())
	var locks []*storepb.Lock
	bytes := 0
	from := &entry{parent: ids.Inode(q.GetAfterParent()), name: string(q.GetAfterName())}
	r.tree.byName.Ascend(from, func(e *entry) bool {
		if e.parent == from.parent && e.name == from.name || !glob.Match(q.GetRule().GetPattern(), r.tree.path(e)) {
			return true
		}
		in, found := r.tree.inode(e.ino)
		if !found || in.unlisted || under.ruleFor(e) != q.GetRule() {
			return true // another rule has a longer pattern
		}
		if lock := view.lock(e, in); lock != nil {
			before, after := r.outcome(e, in), under.outcome(e, in)
			lock.Outcome, lock.Removed = after.text, after.removed && after != before
			locks = append(locks, lock)
			bytes += proto.Size(lock)
		}
		return len(locks) < limit && bytes < lockPageBytes
	})
	return &storepb.Result{Locks: locks}
}

type outcome struct {
	text    string // for people
	removed bool   // lockfs removes it, now or later
}

func (j *evaluator) outcome(e *entry, in *inode) outcome {
	again := *e
	j.evaluate(&again, in)
	g := j.effective(&again, in)
	stale := j.staleNow(&again, g)
	switch removes := g.OnStale == lockfact.Remove; {
	case j.whyLock(&again, in) == notLock:
		return outcome{text: "stays: it is data"}
	case stale != nil && removes && (!j.tree.isFull(in) || j.obstacle(in, g, stale) == ""):
		return outcome{"is removed at once: " + stale.reason, true}
	case stale != nil:
		return outcome{text: "is stale, and stays: " + stale.reason}
	case g.ExpiresAt != 0 && removes:
		return outcome{fmt.Sprintf("is removed at %s unless it is renewed", timestamp(g.ExpiresAt)), true}
	case g.ExpiresAt != 0:
		return outcome{text: fmt.Sprintf("is stale at %s unless it is renewed, and stays", timestamp(g.ExpiresAt))}
	case g.ByProcess() && g.process != nil && removes:
		return outcome{fmt.Sprintf("is removed once process %d on %s has ended", g.PID, g.Host), true}
	}
	return outcome{text: "stays"}
}
