package page

import (
	"cmp"
	"path"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/lockjson"
)

// groups are the possible groups of locks. Each function returns the group of a lock.
var groups = map[string]func(Lock) string{
	"directory": func(l Lock) string { return path.Dir(l.Path) },
	"host":      func(l Lock) string { return l.Host },
}

// tally counts locks.
type tally struct{ Locks, Unreachable, Stale, Waited int }

func (t *tally) add(l Lock) {
	t.Locks++
	t.Unreachable += btoi(l.State == string(lockfact.Unreachable))
	t.Stale += btoi(l.State == string(lockfact.Stale))
	t.Waited += btoi(l.Waiters > 0)
}

// tallies counts the locks of each group.
func tallies(of func(Lock) string, locks []Lock) map[string]*tally {
	all := make(map[string]*tally)
	for _, l := range locks {
		name := of(l)
		if all[name] == nil {
			all[name] = new(tally)
		}
		all[name].add(l)
	}
	return all
}

// grouped returns an order with the locks of each group together. With troubleFirst, groups with unreachable
// or stale locks come first.
func grouped(of func(Lock) string, locks []Lock, troubleFirst bool, order func(a, b Lock) int) func(a, b Lock) int {
	calm := make(map[string]int)
	for name, t := range tallies(of, locks) {
		calm[name] = btoi(troubleFirst && t.Unreachable+t.Stale == 0)
	}
	return func(a, b Lock) int {
		x, y := of(a), of(b)
		return cmp.Or(cmp.Compare(calm[x], calm[y]), lockjson.ComparePaths(x, y), order(a, b))
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
