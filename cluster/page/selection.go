package page

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"lockfs/raftstore/lockjson"
)

// selection is a filter, an order and a page of locks.
type selection struct {
	Words   string // each has to occur in the path, the holder, the host or the format
	State   string // empty: all locks; "all": also data; "waited": those with waiters; else this state
	Path    string // only this path and its subtree; empty: all
	Host    string // only locks with a holder on this host; empty: all
	Group   string // directory, host; empty: no groups
	Sort    string // a column; empty: trouble first
	Reverse bool
	Page    int // from 1
}

var columns = map[string]func(a, b Lock) int{
	"path":    func(a, b Lock) int { return lockjson.ComparePaths(a.Path, b.Path) },
	"state":   func(a, b Lock) int { return strings.Compare(a.State, b.State) },
	"holder":  func(a, b Lock) int { return lockjson.ComparePaths(a.Who(), b.Who()) },
	"format":  func(a, b Lock) int { return strings.Compare(a.Format, b.Format) },
	"host":    func(a, b Lock) int { return lockjson.ComparePaths(a.Host, b.Host) },
	"age":     func(a, b Lock) int { return cmp.Compare(a.Acquired, b.Acquired) },
	"token":   func(a, b Lock) int { return cmp.Compare(a.Token, b.Token) },
	"waiters": func(a, b Lock) int { return cmp.Compare(b.Waiters, a.Waiters) },
	"expires": func(a, b Lock) int {
		return cmp.Or(cmp.Compare(btoi(a.Expires == 0), btoi(b.Expires == 0)), cmp.Compare(a.Expires, b.Expires))
	},
}

func parseSelection(q url.Values) selection {
	s := selection{
		Words: strings.TrimSpace(q.Get("q")), State: q.Get("state"), Path: strings.Trim(q.Get("path"), "/"), Host: q.Get("host"),
		Group: q.Get("group"), Sort: q.Get("sort"),
	}
	s.Sort, s.Reverse = strings.TrimPrefix(s.Sort, "-"), strings.HasPrefix(s.Sort, "-")
	if columns[s.Sort] == nil {
		s.Sort, s.Reverse = "", false
	}
	if groups[s.Group] == nil {
		s.Group = ""
	}
	s.Page, _ = strconv.Atoi(q.Get("page"))
	s.Page = max(s.Page, 1)
	return s
}

// With returns the selection as a URL query, with another value of one parameter. Other parameters than page
// lead to the first page.
func (s selection) With(key, value string) string {
	sort := s.Sort
	if s.Reverse {
		sort = "-" + sort
	}
	all := map[string]string{"q": s.Words, "state": s.State, "path": s.Path, "host": s.Host, "group": s.Group, "sort": sort}
	all[key] = value
	q := url.Values{}
	for key, value := range all {
		if value != "" {
			q.Set(key, value)
		}
	}
	return "/?" + q.Encode()
}

// SortedBy returns the selection as a URL query, sorted by another column; the same column again reverses the
// order.
func (s selection) SortedBy(column string) string {
	if column == s.Sort && !s.Reverse {
		column = "-" + column
	}
	return s.With("sort", column)
}

// Arrow returns the order of a column, for aria-sort.
func (s selection) Arrow(column string) string {
	switch {
	case s.Sort != column:
		return "none"
	case s.Reverse != (column == "age" || column == "waiters"): // these start with the largest
		return "descending"
	}
	return "ascending"
}

// Filters reports whether the selection may leave out locks.
func (s selection) Filters() bool {
	return s.Words != "" || s.Path != "" || s.Host != "" || s.State != "" && s.State != "all"
}

func (s selection) has(l Lock, words []string) bool {
	switch s.State {
	case "":
		if l.State == stateData {
			return false
		}
	case "all":
	case "waited":
		if l.Waiters == 0 {
			return false
		}
	default:
		if l.State != s.State {
			return false
		}
	}
	if s.Path != "" && l.Path != s.Path && !strings.HasPrefix(l.Path, s.Path+"/") || s.Host != "" && l.Host != s.Host {
		return false
	}
	for _, word := range words {
		if !containsFold(l.Path, word) && !containsFold(l.Holder, word) && !containsFold(l.Host, word) && !containsFold(l.Format, word) {
			return false
		}
	}
	return true
}

// containsFold expects the word in lower case.
func containsFold(text, word string) bool { return strings.Contains(strings.ToLower(text), word) }

// of selects and sorts locks.
func (s selection) of(all []Lock) (picked []Lock) {
	words := strings.Fields(strings.ToLower(s.Words))
	for _, l := range all {
		if s.has(l, words) {
			picked = append(picked, l)
		}
	}
	order := func(a, b Lock) int {
		return cmp.Or(cmp.Compare(a.trouble(), b.trouble()), cmp.Compare(b.Waiters, a.Waiters), lockjson.ComparePaths(a.Path, b.Path))
	}
	if by := columns[s.Sort]; by != nil {
		order = func(a, b Lock) int {
			if s.Reverse {
				a, b = b, a
			}
			return cmp.Or(by(a, b), lockjson.ComparePaths(a.Path, b.Path))
		}
	}
	if of := groups[s.Group]; of != nil {
		order = grouped(of, picked, s.Sort == "", order)
	}
	slices.SortStableFunc(picked, order)
	return picked
}
