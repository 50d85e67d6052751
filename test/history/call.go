package history

import (
	"fmt"
	"strings"
	"syscall"
)

// Kind is a kind of call.
type Kind string

// The calls. Those on a descriptor have the inode number of the open file; the others have names.
const (
	Create    Kind = "create"    // open with O_CREAT and O_EXCL
	Open      Kind = "open"      // open with O_CREAT
	Look      Kind = "look"      // open for reading
	Mkdir     Kind = "mkdir"     //
	Rmdir     Kind = "rmdir"     //
	Link      Kind = "link"      // of Name to To
	Unlink    Kind = "unlink"    //
	Rename    Kind = "rename"    // of Name to To
	NoReplace Kind = "noreplace" // rename with RENAME_NOREPLACE
	Stat      Kind = "stat"      //
	List      Kind = "list"      //
	Write     Kind = "write"     // at offset 0 through a descriptor
	Append    Kind = "append"    // through a descriptor with O_APPEND
	Truncate  Kind = "truncate"  // to zero, through a descriptor
	Read      Kind = "read"      // the whole file, through a descriptor
	Fstat     Kind = "fstat"     //
)

// Call is one system call.
type Call struct {
	Record
	Kind   Kind   `json:"kind"`
	Name   string `json:"name,omitempty"` // for a descriptor: the name at its open
	To     string `json:"to,omitempty"`
	Opened int    `json:"opened,omitempty"` // Seq of the call that opened the descriptor
	Ino    uint64 `json:"ino,omitempty"`    // of the descriptor
	Data   string `json:"data,omitempty"`   // written data
	Got    Got    `json:"got"`
	// Over is the time from which a call of unknown outcome takes no effect any more and its own creation is
	// undone; 0: unknown. It is on the clock of the record.
	Over int64 `json:"over,omitempty"`
}

// Got is the result of a call without an error. Other fields are zero.
type Got struct {
	Ino     uint64            `json:"ino,omitempty"` // 0 also if unknown
	Dir     bool              `json:"is_dir,omitempty"`
	Nlink   uint32            `json:"nlink,omitempty"`
	Size    int64             `json:"size,omitempty"`
	Content string            `json:"content,omitempty"`
	Entries map[string]uint64 `json:"entries,omitempty"`
}

// Unknown reports whether the call may have been done, now or later.
func (c *Call) Unknown() bool { return c.Mutates() && (c.Errno == syscall.ETIMEDOUT || c.Orphaned()) }

// Mutates reports whether the call changes something.
func (c *Call) Mutates() bool {
	switch c.Kind {
	case Look, Stat, List, Read, Fstat:
		return false
	}
	return true
}

// OnDescriptor reports whether the call uses a descriptor.
func (c *Call) OnDescriptor() bool {
	switch c.Kind {
	case Write, Append, Truncate, Read, Fstat:
		return true
	}
	return false
}

func (c *Call) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d@%s %s", c.Client, c.Host, c.Kind)
	for _, word := range []string{c.Name, c.To, c.Data} {
		if word != "" {
			b.WriteString(" " + word)
		}
	}
	if c.Ino != 0 {
		fmt.Fprintf(&b, " of inode %d", c.Ino)
	}
	switch {
	case c.End == 0:
		b.WriteString(": did not return")
	case c.Errno != 0:
		fmt.Fprintf(&b, ": %v", c.Errno)
	default:
		fmt.Fprintf(&b, ": ok%v", c.Got)
	}
	return b.String()
}

func (g Got) String() string {
	var b strings.Builder
	if g.Ino != 0 {
		fmt.Fprintf(&b, ", inode %d", g.Ino)
	}
	if g.Dir {
		b.WriteString(", directory")
	}
	if g.Nlink != 0 || g.Size != 0 {
		fmt.Fprintf(&b, ", %d names, %d bytes", g.Nlink, g.Size)
	}
	if g.Content != "" {
		fmt.Fprintf(&b, ", %q", g.Content)
	}
	if g.Entries != nil {
		fmt.Fprintf(&b, ", %v", g.Entries)
	}
	return b.String()
}
