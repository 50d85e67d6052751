package history

import (
	"fmt"
	"strings"
	"syscall"
)

// The calls of histories of locks. Read, Write and Close also use a descriptor there.
const (
	Flock     Kind = "flock"     // flock(2)
	Posix     Kind = "posix"     // F_SETLK and F_SETLKW: the process's
	OFD       Kind = "ofd"       // F_OFD_SETLK and F_OFD_SETLKW: the open file description's
	TestPosix Kind = "testposix" // F_GETLK
	TestOFD   Kind = "testofd"   // F_OFD_GETLK
	Close     Kind = "close"     //
)

// Mode is a mode of a lock.
type Mode byte

// A ReadLock is shared, a WriteLock exclusive.
const (
	NoLock Mode = iota
	ReadLock
	WriteLock
)

// excludes reports whether two owners cannot have these modes at once.
func (m Mode) excludes(other Mode) bool {
	return m != NoLock && other != NoLock && (m == WriteLock || other == WriteLock)
}

func (m Mode) String() string { return [...]string{"none", "read", "write"}[m] }

// Histories lock single bytes, and all bytes after them as one.
const (
	beyond = 8          // stands for all bytes from this one on
	places = beyond + 1 //
)

// Range is the bytes from First to Last, inclusive. Last is beyond for a lock to the end.
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

// LockCall is one system call on a shared locked file.
type LockCall struct {
	Record
	File   string `json:"file"`
	Pid    int    `json:"pid"` // of the client, on its host
	Kind   Kind   `json:"kind"`
	Opened int    `json:"opened"` // descriptor: the client's Seq at its open
	Era    int    `json:"era"`    // number of the client's closes of the file so far: each drops its Posix locks
	Mode   Mode   `json:"mode"`   // requested; NoLock: unlock
	Range  Range  `json:"range"`
	Wait   bool   `json:"wait,omitempty"`

	// Lapsed marks an interrupted wait whose session had ended before it returned. The request may have
	// become a lock of that session, which stays for the lock delay. Only simulated mounts know this, not
	// programs.
	Lapsed bool `json:"lapsed,omitempty"`

	Got LockSeen `json:"got"`
}

// LockSeen is the result of TestPosix and TestOFD.
type LockSeen struct {
	Mode  Mode  `json:"mode"`
	Range Range `json:"range"`
	Pid   int   `json:"pid"`
}

// locks reports whether the call takes or releases a lock.
func (c *LockCall) locks() bool { return c.Kind == Flock || c.Kind == Posix || c.Kind == OFD }

func (c *LockCall) tests() bool { return c.Kind == TestPosix || c.Kind == TestOFD }

// proves reports whether the call proves that the session of its descriptor's locks was alive. After its end,
// the descriptor can only be closed.
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
