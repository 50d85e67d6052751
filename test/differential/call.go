package differential

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// Op is the kind of a call.
type Op string

// What can be called. Paths begin in the directory of the sequence.
const (
	Open      Op = "open" // Path, Flags, Mode; into Slot
	Close     Op = "close"
	Read      Op = "read"   // all that the file of Slot has
	Write     Op = "write"  // Data, where Slot is
	Pwrite    Op = "pwrite" // Data, at At
	Ftruncate Op = "ftruncate"
	Fstat     Op = "fstat"
	Cat       Op = "cat" // open, read and close
	Stat      Op = "stat"
	List      Op = "list"
	Truncate  Op = "truncate"
	Rename    Op = "rename"
	NoReplace Op = "noreplace"
	Link      Op = "link"
	Symlink   Op = "symlink" // Data is the target
	Readlink  Op = "readlink"
	Unlink    Op = "unlink"
	Mkdir     Op = "mkdir"
	Rmdir     Op = "rmdir"
	RemoveAll Op = "rm -rf" // by the program

	tree  Op = "tree"  // all there is below Path
	peek  Op = "peek"  // what a call will meet: Answer.Met
	prune Op = "prune" // removes all below Path but Keep
	enter Op = "enter" // makes Path, if it is not there, and begins a sequence in it
)

// Call is one system call, or a program.
type Call struct {
	Op    Op       `json:"op"`
	Path  string   `json:"path,omitempty"`
	To    string   `json:"to,omitempty"` // of Rename, NoReplace and Link
	Slot  int      `json:"slot,omitempty"`
	Flags int      `json:"flags,omitempty"`
	Mode  uint32   `json:"mode,omitempty"`
	At    int64    `json:"at,omitempty"` // an offset or a size, in bytes
	Data  string   `json:"data,omitempty"`
	Keep  []string `json:"keep,omitempty"`
}

// onSlot tells whether a call is on an open file.
func (c *Call) onSlot() bool {
	switch c.Op {
	case Close, Read, Write, Pwrite, Ftruncate, Fstat:
		return true
	}
	return false
}

// follows tells whether a call goes where a symbolic link that is named leads.
func (c *Call) follows() bool {
	switch c.Op {
	case Open:
		return c.Flags&(unix.O_EXCL|unix.O_NOFOLLOW) == 0
	case Cat, List, Truncate:
		return true
	}
	return false
}

var flagNames = []struct {
	flag int
	name string
}{
	{unix.O_CREAT, "CREAT"}, {unix.O_EXCL, "EXCL"}, {unix.O_TRUNC, "TRUNC"}, {unix.O_APPEND, "APPEND"},
	{unix.O_DIRECTORY, "DIRECTORY"}, {unix.O_NOFOLLOW, "NOFOLLOW"},
}

// String is the call for people.
func (c Call) String() string {
	text := []string{string(c.Op)}
	if c.onSlot() || c.Op == Open {
		text = append(text, fmt.Sprintf("#%d", c.Slot))
	}
	for _, path := range []string{c.Path, c.To} {
		if path != "" {
			text = append(text, path)
		}
	}
	if c.Op == Open {
		flags := []string{[]string{"RDONLY", "WRONLY", "RDWR"}[c.Flags&unix.O_ACCMODE]}
		for _, f := range flagNames {
			if c.Flags&f.flag == f.flag {
				flags = append(flags, f.name)
			}
		}
		text = append(text, strings.Join(flags, "|"))
	}
	if c.Mode != 0 {
		text = append(text, fmt.Sprintf("%#o", c.Mode))
	}
	if c.Op == Pwrite || c.Op == Truncate || c.Op == Ftruncate {
		text = append(text, fmt.Sprint(c.At))
	}
	if c.Data != "" || c.Op == Write {
		text = append(text, fmt.Sprintf("%q", c.Data))
	}
	return strings.Join(text, " ")
}

// Answer is what a call answers. But for Met it has to be the same on both file systems.
type Answer struct {
	Errno string `json:"errno,omitempty"` // its name; none: it was done
	Data  string `json:"data,omitempty"`  // that was read, or said
	Kind  string `json:"kind,omitempty"`  // of a file: see kindOf
	Mode  uint32 `json:"mode,omitempty"`
	Nlink uint64 `json:"nlink,omitempty"` // not of a directory
	Size  int64  `json:"size,omitempty"`  // not of a directory
	// List has a line for each name, in order, with its kind.
	List []string `json:"list,omitempty"`

	// Met is what a call is going to meet: under its path and, if it has two, the other. That of a slot is one.
	Met []Met `json:"met,omitempty"`
}

// Met is what is under a path, with the directories on the way to it.
type Met struct {
	Way   []Named `json:"way"`   // from the top; the last is the path itself
	Links []Named `json:"links"` // symbolic links that were followed at its end
	Below []Named `json:"below"` // in a directory, with all that is below that
}

// last is what the path itself leads to; Ino is 0 if there is nothing.
func (m Met) last() Named {
	if len(m.Way) == 0 {
		return Named{}
	}
	return m.Way[len(m.Way)-1]
}

// Named is what a name is.
type Named struct {
	Place
	Path    string `json:"path"` // from the directory of the sequence
	Ino     uint64 `json:"ino"`
	Kind    string `json:"kind"`
	Nlink   uint64 `json:"nlink"`
	Content string `json:"content"` // of a file, or the target of a symbolic link
}

// Place is a name in a directory, wherever that is.
type Place struct {
	Dir  uint64 `json:"dir"` // its inode
	Name string `json:"name"`
}

// kindOf is the letter by which ls calls the type of a mode.
func kindOf(mode uint32) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return "d"
	case unix.S_IFLNK:
		return "l"
	case unix.S_IFREG:
		return "-"
	}
	return "?"
}

// Step is what a family does without another in between.
type Step struct {
	Family int
	Calls  []Call
}

// String has a line for each call.
func (s Step) String() string {
	var lines []string
	for _, call := range s.Calls {
		lines = append(lines, fmt.Sprintf("%d: %s", s.Family, call))
	}
	return strings.Join(lines, "\n")
}
