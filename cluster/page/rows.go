package page

import "strconv"

// groupRow is the heading of a group.
type groupRow struct {
	tally
	Name string
	Link string // only this group; empty: it has no filter
}

// rows returns the rows of some of the locks, with headings of their groups.
func (s selection) rows(all, shown []Lock) (rows []piece) {
	of := groups[s.Group]
	var counts map[string]*tally
	if of != nil {
		counts = tallies(of, all)
	}
	for i, l := range shown {
		if of != nil && (i == 0 || of(l) != of(shown[i-1])) {
			rows = append(rows, s.heading(of(l), *counts[of(l)]))
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
