package budget

import (
	"sync"
)

// Pool is a budget of one process, of calls, connections or files in use. A user other than root has at most
// Each.Most, and all users but root leave the reserve of All.Most. Its methods are safe for concurrent use.
type Pool struct {
	each    Limit
	all     Limit
	reserve uint64

	mu      sync.Mutex
	used    Counts[User]
	counts  [3]uint64 // by standing
	refused uint64
}

// shownAsMetric is where the use of a pool is shown.
const shownAsMetric = "the metric lockfs_budget_used of the daemon"

// NewPool returns a pool with a limit for each user and one for all together, with a reserve for Privileged
// requests. A limit of 0 means no limit.
func NewPool(each, all Limit, reserve uint64) *Pool {
	each.Shown, all.Shown = shownAsMetric, shownAsMetric
	return &Pool{each: each, all: all, reserve: min(reserve, all.Most)}
}

// Standing is the class of a request.
type Standing int

// The standings. Privileged requests, of the host's root and of health checks, may use the reserve and have
// no limit of their own. A replacing request always fits: it replaces one that is about to end.
const (
	Ordinary Standing = iota
	Privileged
	Replacing
)

// Take takes n units for a user. On error, an *ExceededError, it takes nothing.
func (p *Pool) Take(user User, n uint64, standing Standing) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if exceeded := p.exceeded(user, n, standing); exceeded != nil {
		p.refused++
		return exceeded
	}
	p.used.Add(user, int64(n))
	p.counts[standing] += n
	return nil
}

func (p *Pool) exceeded(user User, n uint64, standing Standing) *ExceededError {
	if standing == Ordinary && p.each.Most != 0 && p.used.Used(user)+n > p.each.Most {
		return p.each.Exceeded(user.String())
	}
	if p.all.Most == 0 || standing == Replacing {
		return nil
	}
	if unreserved := p.all.Most - p.reserve; standing == Ordinary && p.counts[Ordinary]+p.counts[Replacing]+n > unreserved || p.total()+n > p.all.Most {
		exceeded := p.all.Exceeded("all users together")
		exceeded.Shared = true
		return exceeded
	}
	return nil
}

func (p *Pool) total() uint64 { return p.counts[Ordinary] + p.counts[Privileged] + p.counts[Replacing] }

// Give returns the units of a Take.
func (p *Pool) Give(user User, n uint64, standing Standing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used.Add(user, -int64(n))
	p.counts[standing] -= n
}

// Budget returns the name of the resource.
func (p *Pool) Budget() string { return p.each.Budget }

// Used returns the use of a user.
func (p *Pool) Used(user User) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used.Used(user)
}

// Usage is the use of a pool at one moment.
type Usage struct {
	Each, All Limit
	Total     uint64
	Refused   uint64      // requests since the process began
	Users     []Use[User] // those with the largest uses
}

// Usage returns the use, with at most this many users.
func (p *Pool) Usage(users int) Usage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Usage{
		Each: p.each, All: p.all, Total: p.total(), Refused: p.refused, Users: p.used.Largest(users, User.Compare),
	}
}
