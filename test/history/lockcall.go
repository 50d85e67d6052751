package history

import (
	"fmt"
	"strings"
	"syscall"
)

// The calls of histories of locks. Read, Write and Close there are through a descriptor as well.
const (
	Flock     Kind = "flock"     // flock(2)
	Posix     Kind = "posix"     // F_SETLK and F_SETLKW: the process's
	OFD       Kind = "ofd"       // F_OFD_SETLK and F_OFD_SETLKW: the open file description's
	TestPosix Kind = "testposix" // F_GETLK
	TestOFD   Kind = "testofd"   // F_OFD_GETLK
	Close     Kind = "close"     //
)

// Mode is how something is locked.
type Mode byte

// A ReadLock is shared, a WriteLock exclusive.
const (
	NoLock Mode = iota
	ReadLock
	WriteLock
)

// excludes tells whether two owners cannot both have it so.
func (m Mode) excludes(other Mode) bool {
	return m != NoLock && other != NoLock && (m == WriteLock || other == WriteLock)
}

func (m Mode) String() string { return [...]string{"none", "read", "write"}[m] }

// Histories lock single bytes, and what comes behind them as one.
const (
	beyond = 8          // stands for all bytes from this one on
	places = beyond + 1 //
)

// Range is the bytes from First to Last, which are included. Last is beyond for a lock to the end.
type Range struct {
	First int `json:"first"`
	Last  int `json:"last"`
}

var everything = Range{0, beyond}

func (r Range) valid() bool { return 0 <= r.First && r.First <= r.Last && r.Last <= beyond }

func (r Range) overlaps(other Range) bool { return r.First <= other.Last && other.First <= r.Last }

func (r Range) String() string {
	if r.Last == beyond {
		return fmt.Sprintf("%d-", r.First)
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

// LockCall is one system call on a file that several lock.
type LockCall struct {
	Record
	File   string `json:"file"`
	Pid    int    `json:"pid"` // of the client, on its host
	Kind   Kind   `json:"kind"`
	Opened int    `json:"opened"` // which descriptor: the client's Seq when it was opened
	Era    int    `json:"era"`    // how often the client had closed the file: each drops its Posix locks
	Mode   Mode   `json:"mode"`   // that is wanted; NoLock: it is unlocked
	Range  Range  `json:"range"`
	Wait   bool   `json:"wait,omitempty"`

	// Lapsed says that a wait was interrupted, and that its session had ended before it returned. The request may have become a lock of
	// that session, which stays for the lock delay. Simulated mounts can tell; a program cannot.
	Lapsed bool `json:"lapsed,omitempty"`

	Got LockSeen `json:"got"`
}

// LockSeen is what TestPosix and TestOFD answer.
type LockSeen struct {
	Mode  Mode  `json:"mode"`
	Range Range `json:"range"`
	Pid   int   `json:"pid"`
}

// locks tells that the call takes or releases a lock.
func (c *LockCall) locks() bool { return c.Kind == Flock || c.Kind == Posix || c.Kind == OFD }

func (c *LockCall) tests() bool { return c.Kind == TestPosix || c.Kind == TestOFD }

// proves tells whether the call shows that the session was alive in which its descriptor was locked: nothing can be
// done through it after that, except to close it.
func (c *LockCall) proves() bool {
	return c.Kind != Close && c.End != 0 && (c.Errno == 0 || c.locks() && c.Errno == syscall.EAGAIN)
}

func (c *LockCall) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d@%s %s %s of descriptor %d", c.Client, c.Host, c.Kind, c.File, c.Opened)
	if c.locks() || c.tests() {
		fmt.Fprintf(&b, ", %v %v", c.Mode, c.Range)
	}
	if c.Wait {
		b.WriteString(", waits")
	}
	fmt.Fprintf(&b, ": %s", c.outcome())
	if c.tests() && c.Errno == 0 {
		fmt.Fprintf(&b, ", %v %v by %d", c.Got.Mode, c.Got.Range, c.Got.Pid)
	}
	return b.String()
}
