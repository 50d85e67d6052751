package differential

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// Op is a kind of call.
type Op string

// The calls. Paths begin in the directory of the sequence.
const (
	Open      Op = "open" // Path, Flags, Mode; into Slot
	Close     Op = "close"
	Read      Op = "read"   // the whole file of Slot
	Write     Op = "write"  // Data, at the offset of Slot
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
	RemoveAll Op = "rm -rf" // the program rm

	tree  Op = "tree"  // everything below Path
	peek  Op = "peek"  // the files at a call's paths: Answer.Met
	prune Op = "prune" // removes everything below Path except Keep
	enter Op = "enter" // creates a missing Path and begins a sequence in it
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

// onSlot reports whether a call uses an open file.
func (c *Call) onSlot() bool {
	switch c.Op {
	case Close, Read, Write, Pwrite, Ftruncate, Fstat:
		return true
	}
	return false
}

// follows reports whether a call follows a symbolic link as its last component.
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

// String returns the call for messages.
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

// Answer is the result of a call. Except Met it must be equal on both file systems.
type Answer struct {
	Errno string `json:"errno,omitempty"` // symbolic; empty: success
	Data  string `json:"data,omitempty"`  // read from a file, or printed
	Kind  string `json:"kind,omitempty"`  // of a file: see kindOf
	Mode  uint32 `json:"mode,omitempty"`
	Nlink uint64 `json:"nlink,omitempty"` // not of a directory
	Size  int64  `json:"size,omitempty"`  // not of a directory
	// List has a line for each name, in order, with its kind.
	List []string `json:"list,omitempty"`

	// Met has the files at a call's paths before it. A slot counts as one path.
	Met []Met `json:"met,omitempty"`
}

// Met is the end of a path, with the directories before it.
type Met struct {
	Way   []Named `json:"way"`   // from the top; the last is the path itself
	Links []Named `json:"links"` // symbolic links followed at its end
	Below []Named `json:"below"` // everything below, if it is a directory
}

// last returns the file of the path; Ino is 0 if it does not exist.
func (m Met) last() Named {
	if len(m.Way) == 0 {
		return Named{}
	}
	return m.Way[len(m.Way)-1]
}

// Named is a name and its inode.
type Named struct {
	Place
	Path    string `json:"path"` // from the directory of the sequence
	Ino     uint64 `json:"ino"`
	Kind    string `json:"kind"`
	Nlink   uint64 `json:"nlink"`
	Content string `json:"content"` // of a file, or the target of a symbolic link
}

// Place is a name in a directory, independent of the path.
type Place struct {
	Dir  uint64 `json:"dir"` // its inode
	Name string `json:"name"`
}

// kindOf returns the letter of ls for the type of a mode.
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

// Step is a family's work without another family in between.
type Step struct {
	Family int
	Calls  []Call
}

// String returns a line for each call.
func (s Step) String() string {
	var lines []string
	for _, call := range s.Calls {
		lines = append(lines, fmt.Sprintf("%d: %s", s.Family, call))
	}
	return strings.Join(lines, "\n")
}
