package page

import (
	"cmp"
	"path"
	"strconv"

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

// groupRow is the heading of a group.
type groupRow struct {
	tally
	Name string
	Link string // only this group; empty: it has no filter
}

func (s selection) tallies(locks []Lock) map[string]*tally {
	of, all := groups[s.Group], make(map[string]*tally)
	for _, l := range locks {
		name := of(l)
		if all[name] == nil {
			all[name] = new(tally)
		}
		all[name].add(l)
	}
	return all
}

// grouped returns an order with the locks of each group together. Groups with unreachable or stale locks come
// first if trouble does.
func (s selection) grouped(locks []Lock, order func(a, b Lock) int) func(a, b Lock) int {
	of := groups[s.Group]
	if of == nil {
		return order
	}
	calm := make(map[string]int)
	for name, t := range s.tallies(locks) {
		calm[name] = btoi(s.Sort == "" && t.Unreachable+t.Stale == 0)
	}
	return func(a, b Lock) int {
		x, y := of(a), of(b)
		return cmp.Or(cmp.Compare(calm[x], calm[y]), lockjson.ComparePaths(x, y), order(a, b))
	}
}

// rows returns the rows of some of the locks, with headings of their groups.
func (s selection) rows(all, shown []Lock) (rows []piece) {
	of := groups[s.Group]
	var tallies map[string]*tally
	if of != nil {
		tallies = s.tallies(all)
	}
	for i, l := range shown {
		if of != nil && (i == 0 || of(l) != of(shown[i-1])) {
			rows = append(rows, s.heading(of(l), *tallies[of(l)]))
		}
		rows = append(rows, piece{l.Key(), "row-lock", l})
	}
	return rows
}

func (s selection) heading(name string, t tally) piece {
	row := groupRow{tally: t, Name: name}
	switch {
	case s.Group == "host" && name == "":
		row.Name = "no host"
	case s.Group == "host":
		row.Link = s.With("host", name)
	case name == ".":
		row.Name = "top directory"
	default:
		row.Link = s.With("path", name)
	}
	return piece{"group " + name, "row-group", row}
}

// pager has the links to other pages of a list.
type pager struct {
	Page, Pages    int
	Previous, Next string // empty: none
}

// paged returns the locks of the page, and its pager. A page beyond the last one is the last one.
func (s selection) paged(locks []Lock) (shown []Lock, from int, p pager) {
	p.Pages = max(1, (len(locks)+rowsShown-1)/rowsShown)
	p.Page = min(s.Page, p.Pages)
	if p.Page > 1 {
		p.Previous = s.With("page", strconv.Itoa(p.Page-1))
	}
	if p.Page < p.Pages {
		p.Next = s.With("page", strconv.Itoa(p.Page+1))
	}
	from = (p.Page - 1) * rowsShown
	return locks[from:min(from+rowsShown, len(locks))], from, p
}
