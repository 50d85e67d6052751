package page

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"lockfs/formats/lockfact"
	"lockfs/raftstore/storepb"
)

// Lock is a row in the list of locks, and an element of /v1/locks. For a hidden lock it has only the path and
// times.
type Lock struct {
	Path     string `json:"path"`              // from the root of the mount
	State    string `json:"state"`             // held, stale, unreachable; hidden: not readable for the viewer; data: not a lock
	Why      string `json:"why,omitempty"`     // reason for the state, or for being a lock
	Format   string `json:"format,omitempty"`  // flock or fcntl, if only those are held
	Holder   string `json:"holder,omitempty"`  // as in its format
	Host     string `json:"host,omitempty"`    // of the holder
	PID      uint32 `json:"pid,omitempty"`     // of the holder
	Token    uint64 `json:"token,omitempty"`   // fencing token
	Acquired moment `json:"acquired,omitzero"` // time of the holder's acquisition
	Expires  moment `json:"expires,omitzero"`  // time of becoming stale without renewal
	Waiters  int    `json:"waiters,omitempty"` // waiters for its flock or fcntl lock
	Parent   uint64 `json:"-"`                 // key in the cluster, with Name
	Name     string `json:"-"`                 //
}

// States of a lock besides those of lockfact.
const (
	stateHidden = "hidden"
	stateData   = "data"
)

func describe(l *storepb.Lock) Lock {
	f := l.GetFacts()
	d := Lock{
		Path: string(l.GetPath()), State: l.GetState(), Why: l.GetReason(), Holder: f.GetHolder(), Host: f.GetHost(), PID: f.GetPid(),
		Token: l.GetToken(), Acquired: moment(l.GetAcquired()), Expires: moment(f.GetExpiresAt()), Parent: l.GetParent(), Name: string(l.GetName()),
	}
	if l.GetState() == "" {
		d.State = stateHidden
		return d
	}
	if format := lockfact.Format(f.GetFormat()); format != lockfact.None {
		d.Format = format.String()
	}
	var held *storepb.AdvisoryLock
	for _, a := range l.GetAdvisoryLocks() {
		if a.GetPosition() != 0 {
			d.Waiters++
		} else if held == nil {
			held = a
		}
	}
	switch {
	case l.GetBecause() != "" && d.Why == "":
		d.Why = l.GetBecause()
	case l.GetBecause() == "" && held != nil:
		d.Why, d.Format = "a program holds it with "+kindOf(held), kindOf(held)
		d.Holder, d.Host, d.PID, d.Acquired, d.Expires = "", held.GetHost(), held.GetPid(), moment(held.GetSince()), 0
	case l.GetBecause() == "" && d.Waiters == 0:
		d.State = stateData
	}
	return d
}

func kindOf(a *storepb.AdvisoryLock) string {
	if a.GetKind() == storepb.LockKind_RECORD {
		return "fcntl"
	}
	return "flock"
}

// Key identifies a row across live updates.
func (l Lock) Key() string { return fmt.Sprintf("%d/%s", l.Parent, l.Name) }

// Who returns the holder as a short text.
func (l Lock) Who() string {
	pid := fmt.Sprintf("pid %d", l.PID)
	switch {
	case l.PID == 0 || l.Holder == fmt.Sprint(l.PID):
		if l.PID != 0 {
			return pid
		}
		return l.Holder
	case l.Holder == "":
		return pid
	}
	return l.Holder + ", " + pid
}

// Link returns the path of the lock's page.
func (l Lock) Link() string { return "/lock/" + escapePath(l.Path) }

func escapePath(path string) string {
	names := strings.Split(path, "/")
	for i, name := range names {
		names[i] = url.PathEscape(name)
	}
	return strings.Join(names, "/")
}

// longQueue is the number of waiters which counts as trouble.
const longQueue = 3

// trouble returns the urgency of a lock, the most urgent first.
func (l Lock) trouble() int {
	switch {
	case l.State == string(lockfact.Unreachable):
		return 0
	case l.State == string(lockfact.Stale):
		return 1
	case l.Waiters >= longQueue:
		return 2
	case l.Waiters > 0:
		return 3
	case l.State == stateHidden:
		return 5
	case l.State == stateData:
		return 6
	}
	return 4
}

// selection is a filter and an order of locks.
type selection struct {
	Words   string // each has to occur in the path, the holder, the host or the format
	State   string // empty: all locks; "all": also data; "waited": those with waiters; else this state
	Sort    string // a column; empty: trouble first
	Reverse bool
	Path    string // only this path and its subtree; empty: all
}

var columns = map[string]func(a, b Lock) int{
	"path":    func(a, b Lock) int { return strings.Compare(a.Path, b.Path) },
	"state":   func(a, b Lock) int { return strings.Compare(a.State, b.State) },
	"holder":  func(a, b Lock) int { return strings.Compare(a.Who(), b.Who()) },
	"host":    func(a, b Lock) int { return strings.Compare(a.Host, b.Host) },
	"age":     func(a, b Lock) int { return cmp.Compare(a.Acquired, b.Acquired) },
	"token":   func(a, b Lock) int { return cmp.Compare(a.Token, b.Token) },
	"waiters": func(a, b Lock) int { return cmp.Compare(b.Waiters, a.Waiters) },
	"expires": func(a, b Lock) int {
		return cmp.Or(cmp.Compare(btoi(a.Expires == 0), btoi(b.Expires == 0)), cmp.Compare(a.Expires, b.Expires))
	},
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func parseSelection(q url.Values) selection {
	s := selection{Words: strings.TrimSpace(q.Get("q")), State: q.Get("state"), Sort: q.Get("sort"), Path: strings.Trim(q.Get("path"), "/")}
	s.Sort, s.Reverse = strings.TrimPrefix(s.Sort, "-"), strings.HasPrefix(s.Sort, "-")
	if columns[s.Sort] == nil {
		s.Sort, s.Reverse = "", false
	}
	return s
}

// Query returns the selection as a URL query, sorted by another column; the same column again reverses the
// order.
func (s selection) Query(sort string) string {
	if sort == s.Sort && !s.Reverse {
		sort = "-" + sort
	}
	q := url.Values{}
	for key, value := range map[string]string{"q": s.Words, "state": s.State, "sort": sort, "path": s.Path} {
		if value != "" {
			q.Set(key, value)
		}
	}
	return "?" + q.Encode()
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
	if s.Path != "" && l.Path != s.Path && !strings.HasPrefix(l.Path, s.Path+"/") {
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

// of selects and sorts locks. It returns at most limit locks, and the number of matches.
func (s selection) of(all []Lock, limit int) (picked []Lock, found int) {
	words := strings.Fields(strings.ToLower(s.Words))
	for _, l := range all {
		if s.has(l, words) {
			picked = append(picked, l)
		}
	}
	order := func(a, b Lock) int {
		return cmp.Or(cmp.Compare(a.trouble(), b.trouble()), cmp.Compare(b.Waiters, a.Waiters), strings.Compare(a.Path, b.Path))
	}
	if by := columns[s.Sort]; by != nil {
		order = func(a, b Lock) int {
			if s.Reverse {
				a, b = b, a
			}
			return cmp.Or(by(a, b), strings.Compare(a.Path, b.Path))
		}
	}
	slices.SortStableFunc(picked, order)
	found = len(picked)
	return picked[:min(limit, found)], found
}
