// Package budget limits the use of resources by each user, so one user leaves room for others.
//
// The state machine has budgets of locks, inodes, bytes and sessions in [Counts], which are pure. A process
// counts its own resources in a [Pool], for concurrent use: calls in progress, waits, open control files.
// Both refuse with an [ExceededError], which names the budget and its setting.
package budget

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
)

// User is a user of a host. Most budgets are for each host, since one uid on two hosts may be two persons.
type User struct {
	Host string
	UID  uint32
}

func (u User) String() string {
	if u.Host == "" {
		return fmt.Sprintf("user %d", u.UID)
	}
	return fmt.Sprintf("user %d on host %s", u.UID, u.Host)
}

// Compare orders users by host and uid.
func (u User) Compare(other User) int {
	switch {
	case u.Host < other.Host:
		return -1
	case u.Host > other.Host:
		return 1
	case u.UID < other.UID:
		return -1
	case u.UID > other.UID:
		return 1
	}
	return 0
}

// Limit is a limit of a resource.
type Limit struct {
	Budget  string // the resource, in the plural: "record locks"
	Of      string // its scope: "user and host"
	Setting string // to change it; empty: none
	Shown   string // where an administrator sees the use; empty: nowhere
	Most    uint64
}

// Exceeded returns the refusal of a request beyond the limit.
func (l Limit) Exceeded(by string) *ExceededError { return &ExceededError{Limit: l, By: by} }

// ExceededError reports a budget without room.
type ExceededError struct {
	Limit
	By     string // the user or host that reached the limit
	Shared bool   // by all users together
}

func (e *ExceededError) Error() string {
	text := fmt.Sprintf("%s reached the limit of %d %s for each %s", e.By, e.Most, e.Budget, e.Of)
	if e.Shown != "" {
		text += "; see " + e.Shown
	}
	if e.Setting != "" {
		text += "; change it with " + e.Setting
	}
	return text
}

// Status returns the HTTP status of a refused request: 429 if its user has too many, 503 if all users
// together have.
func (e *ExceededError) Status() int {
	if e.Shared {
		return http.StatusServiceUnavailable
	}
	return http.StatusTooManyRequests
}

// Counts counts the use of each key. The zero value is empty. It is not safe for concurrent use.
type Counts[K comparable] struct{ used map[K]uint64 }

// Add adds to the use of a key; by may be negative. A key without use takes no memory.
func (c *Counts[K]) Add(key K, by int64) {
	used := c.used[key] + uint64(by)
	if used == 0 {
		delete(c.used, key)
		return
	}
	if c.used == nil {
		c.used = make(map[K]uint64)
	}
	c.used[key] = used
}

// Used returns the use of a key.
func (c *Counts[K]) Used(key K) uint64 { return c.used[key] }

// Len returns the number of keys with a use.
func (c *Counts[K]) Len() int { return len(c.used) }

// Equal reports whether all uses are equal.
func (c *Counts[K]) Equal(other *Counts[K]) bool { return maps.Equal(c.used, other.used) }

// Use is the use of one key.
type Use[K comparable] struct {
	Key  K
	Used uint64
}

// Largest returns at most this many keys, those with the largest uses; compare orders equal ones.
func (c *Counts[K]) Largest(most int, compare func(a, b K) int) []Use[K] {
	uses := make([]Use[K], 0, len(c.used))
	for key, used := range c.used {
		uses = append(uses, Use[K]{key, used})
	}
	slices.SortFunc(uses, func(a, b Use[K]) int {
		switch {
		case a.Used > b.Used:
			return -1
		case a.Used < b.Used:
			return 1
		}
		return compare(a.Key, b.Key)
	})
	return uses[:min(most, len(uses))]
}
