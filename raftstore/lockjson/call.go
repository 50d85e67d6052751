package lockjson

import (
	"encoding/json"
	"time"
)

// Call is what a program asked of a mount and was answered, as `lockfs trace` records it: one object a line.
//
// Begin and End are cluster time as the mount reckons it, and may be wrong by Within; those on CLOCK_BOOTTIME are exact, for calls on the
// same host since the same boot. The call took effect, if it did, between them.
type Call struct {
	Call        string        `json:"call"` // one of the Call constants
	Host        string        `json:"host"`
	Boot        string        `json:"boot,omitempty"` // id of the host's boot
	Session     uint64        `json:"session,omitempty"`
	PID         uint32        `json:"pid"` // that asked; a thread's
	UID         uint32        `json:"uid"`
	Begin       time.Time     `json:"begin"`
	End         time.Time     `json:"end"`
	BootBegin   int64         `json:"boot_begin"` // nanoseconds of CLOCK_BOOTTIME
	BootEnd     int64         `json:"boot_end"`
	Within      time.Duration `json:"within"`                   // nanoseconds
	Directory   uint64        `json:"lock_directory,omitempty"` // inode
	Name        string        `json:"name,omitempty"`
	ToDirectory uint64        `json:"to_directory,omitempty"` // of a rename
	ToName      string        `json:"to_name,omitempty"`
	Exclusive   bool          `json:"exclusive,omitempty"` // likewise: the other name was free (NOREPLACE)
	Index       uint64        `json:"index,omitempty"`     // of the command in the log that did it: the token of the name that was made
	Inode       uint64        `json:"inode,omitempty"`     // of a kernel lock
	Owner       string        `json:"owner,omitempty"`     // likewise, within the session
	Start       uint64        `json:"start,omitempty"`     // likewise, first byte
	Last        uint64        `json:"last,omitempty"`      // likewise, last byte
	Shared      bool          `json:"shared,omitempty"`
	Error       string        `json:"error,omitempty"` // empty: it was done
	Lost        uint64        `json:"lost,omitempty"`  // of CallLost: how many calls
}

// What is called.
const (
	CallMake   = "make"   // a name exclusively: open with O_EXCL, mkdir, symlink, mknod, link, or rename with NOREPLACE
	CallRemove = "remove" // a name: unlink, rmdir
	CallRename = "rename" // a name to another that may be taken
	CallLock   = "lock"   // flock or fcntl
	CallUnlock = "unlock" // likewise
	CallLost   = "lost"   // some calls were not recorded: whoever reads them was too slow
)

// CallLine renders a call as a line of JSON, without its newline, as [EventLine] does an event.
func CallLine(c *Call) []byte { return jsonLine(c) }

// ParseCallLine reads what CallLine has rendered.
func ParseCallLine(line []byte) (*Call, error) {
	c := new(Call)
	return c, json.Unmarshal(line, c)
}
