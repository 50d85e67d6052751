package advisory

import (
	"cmp"
	"math"

	"lockfs/raftstore/ids"
)

// interval is a held lock, or a waiting request, in an intervals tree.
type interval struct {
	*lock
	request *waiter // nil: the lock is held
}

// intervals is an interval tree of the locks or of the requests of one file. It is an AVL tree by start, and
// each node knows how far the ranges below it reach. No tree on pkg.go.dev can exclude one owner and one type
// of lock from a search without a visit of each.
//
// A tree is never modified: put and remove return another one that shares most nodes. The nil tree is empty.
type intervals struct {
	interval
	left, right *intervals
	height      int
	below       summary // of this node and all below it
}

// summary lets a search skip many intervals at once.
type summary struct {
	any, exclusive reach
	first, last    ids.Index // position of the earliest and of the latest request
	since          int64     // the latest one
	count          int       // without interrupted requests
}

// reach is how far the ranges of some intervals reach, for one owner and for all other owners.
type reach struct {
	past  [2]uint64 // first byte behind the ranges; 0: none
	owner [2]lockOwner
}

func (r *reach) add(past uint64, owner lockOwner) {
	switch {
	case past == 0:
	case r.past[0] != 0 && r.owner[0] == owner:
		r.past[0] = max(r.past[0], past)
	case past > r.past[0]:
		r.past[1], r.owner[1] = r.past[0], r.owner[0]
		r.past[0], r.owner[0] = past, owner
	case past > r.past[1]:
		r.past[1], r.owner[1] = past, owner
	}
}

func (r *reach) addAll(other *reach) {
	r.add(other.past[0], other.owner[0])
	r.add(other.past[1], other.owner[1])
}

// without returns the first byte behind the ranges of all owners but one.
func (r *reach) without(owner lockOwner) uint64 {
	if r.owner[0] == owner && owner != nobody {
		return r.past[1]
	}
	return r.past[0]
}

// holds reports whether an interval excludes others. An interrupted request does not.
func (i *interval) holds() bool { return i.request == nil || i.request.interrupted == 0 }

func (i *interval) position() ids.Index {
	if i.request == nil {
		return 0
	}
	return i.request.position
}

func (i *interval) summary() (s summary) {
	s.first, s.since = math.MaxUint64, i.since
	if !i.holds() {
		return s
	}
	s.first, s.last, s.count = i.position(), i.position(), 1
	s.any.add(i.end+1, ownerOf(i.lock))
	if i.exclusive {
		s.exclusive = s.any
	}
	return s
}

func (s *summary) add(other *summary) {
	s.any.addAll(&other.any)
	s.exclusive.addAll(&other.exclusive)
	s.first, s.last, s.since = min(s.first, other.first), max(s.last, other.last), max(s.since, other.since)
	s.count += other.count
}

// compare is the order of a tree: by start, and then by the rest.
func compare(a, b *interval) int {
	return cmp.Or(
		cmp.Compare(a.start, b.start), cmp.Compare(a.position(), b.position()), cmp.Compare(a.session, b.session),
		cmp.Compare(a.owner, b.owner), cmp.Compare(a.until, b.until), cmp.Compare(a.seq, b.seq),
	)
}

func (t *intervals) depth() int {
	if t == nil {
		return 0
	}
	return t.height
}

func join(left *intervals, at interval, right *intervals) *intervals {
	t := &intervals{interval: at, left: left, right: right, height: 1 + max(left.depth(), right.depth()), below: at.summary()}
	for _, side := range [...]*intervals{left, right} {
		if side != nil {
			t.below.add(&side.below)
		}
	}
	return t
}

// balance joins sides with depths that may differ by two.
func balance(left *intervals, at interval, right *intervals) *intervals {
	switch {
	case left.depth() > right.depth()+1:
		if left.left.depth() >= left.right.depth() {
			return join(left.left, left.interval, join(left.right, at, right))
		}
		return join(join(left.left, left.interval, left.right.left), left.right.interval, join(left.right.right, at, right))
	case right.depth() > left.depth()+1:
		if right.right.depth() >= right.left.depth() {
			return join(join(left, at, right.left), right.interval, right.right)
		}
		return join(join(left, at, right.left.left), right.left.interval, join(right.left.right, right.interval, right.right))
	}
	return join(left, at, right)
}

func (t *intervals) put(i interval) *intervals {
	if t == nil {
		return join(nil, i, nil)
	}
	switch order := compare(&i, &t.interval); {
	case order < 0:
		return balance(t.left.put(i), t.interval, t.right)
	case order > 0:
		return balance(t.left, t.interval, t.right.put(i))
	}
	return join(t.left, i, t.right)
}

func (t *intervals) remove(i interval) *intervals {
	if t == nil {
		return nil
	}
	switch order := compare(&i, &t.interval); {
	case order < 0:
		return balance(t.left.remove(i), t.interval, t.right)
	case order > 0:
		return balance(t.left, t.interval, t.right.remove(i))
	case t.right == nil:
		return t.left
	}
	least, rest := t.right.split()
	return balance(t.left, least, rest)
}

func (t *intervals) split() (least interval, rest *intervals) {
	if t.left == nil {
		return t.interval, t.right
	}
	least, rest = t.left.split()
	return least, balance(rest, t.interval, t.right)
}

// conflict is a search for the intervals that exclude a lock. They overlap its range and are of another
// owner. If the lock is shared, they are exclusive.
type conflict struct {
	start, end uint64
	exclusive  bool
	owner      lockOwner
	before     ids.Index // only requests with a lower position
}

func conflictWith(a *lock) *conflict {
	return &conflict{start: a.start, end: a.end, exclusive: a.exclusive, owner: ownerOf(a), before: math.MaxUint64}
}

func (c *conflict) has(i *interval) bool {
	return i.start <= c.end && i.end >= c.start && (i.exclusive || c.exclusive) && i.holds() && i.position() < c.before &&
		(ownerOf(i.lock) != c.owner || c.owner == nobody)
}

// mayBeIn returns false if a tree certainly contains no conflict.
func (c *conflict) mayBeIn(t *intervals) bool {
	if t == nil || t.below.first >= c.before {
		return false
	}
	ranges := &t.below.exclusive
	if c.exclusive {
		ranges = &t.below.any
	}
	return ranges.without(c.owner) > c.start
}

// leftmost returns the first interval, in the order of the tree, that excludes a lock. Without a limit of
// positions it takes logarithmic time: the summary tells whether an interval reaches into the range.
func (t *intervals) leftmost(c *conflict) *interval {
	if !c.mayBeIn(t) {
		return nil
	}
	if found := t.left.leftmost(c); found != nil {
		return found
	}
	switch {
	case t.start > c.end:
		return nil
	case c.has(&t.interval):
		return &t.interval
	}
	return t.right.leftmost(c)
}

// each visits all intervals that exclude a lock, in the order of the tree, until visit returns false.
func (t *intervals) each(c *conflict, visit func(*interval) bool) bool {
	if !c.mayBeIn(t) {
		return true
	}
	if !t.left.each(c, visit) {
		return false
	}
	if t.start > c.end {
		return true
	}
	return (!c.has(&t.interval) || visit(&t.interval)) && t.right.each(c, visit)
}

// latestSteps is how many nodes latest visits beyond those needed to find any request.
const latestSteps = 64

// latest returns a request that excludes a lock, with a high position: the highest, unless finding it takes
// many steps.
func (t *intervals) latest(c *conflict) *interval {
	search := latestSearch{conflict: c}
	search.in(t)
	return search.found
}

type latestSearch struct {
	*conflict
	found *interval
	steps int
}

func (s *latestSearch) in(t *intervals) {
	if !s.mayBeIn(t) || s.found != nil && (t.below.last <= s.found.position() || s.steps > latestSteps) {
		return
	}
	s.steps++
	if t.start > s.end {
		s.in(t.left)
		return
	}
	if s.has(&t.interval) && (s.found == nil || s.found.position() < t.position()) {
		s.found = &t.interval
	}
	first, second := t.right, t.left
	if first == nil || second != nil && second.below.last > first.below.last {
		first, second = second, first
	}
	s.in(first)
	s.in(second)
}

// covering returns how far the intervals reach from a byte or before.
func (t *intervals) covering(at uint64, exclusiveOnly bool) (r reach) {
	add := func(s *summary) {
		if exclusiveOnly {
			r.addAll(&s.exclusive)
		} else {
			r.addAll(&s.any)
		}
	}
	for t != nil {
		if t.start > at {
			t = t.left
			continue
		}
		if t.left != nil {
			add(&t.left.below)
		}
		own := t.summary()
		add(&own)
		t = t.right
	}
	return r
}

// isSince reports whether a lock or request came at a time or later.
func (t *intervals) isSince(at int64) bool { return t != nil && t.below.since >= at }

func (t *intervals) count() int {
	if t == nil {
		return 0
	}
	return t.below.count
}
