// Package version says which versions of a cluster this program can be part of.
//
// The version of a cluster is a number in its replicated state: what may be in its log, its snapshots and its messages. A program
// knows a range of them. The cluster runs at one that all its members and mounts know, and is raised by one when all know the next; it
// never goes back. So what a version has added is proposed only when nobody is left who does not know it, and until then all can go
// back to the program before.
//
// # The next version
//
// Package codec has a table of the operations, fields and values that each version has added, and a program does not know those that are
// later than Newest. To release a version, raise Released, and keep data of it beside that of the versions before (package kept). Tests
// bring a cluster to a next version and its program, which exist in test/mutants/next alone.
package version

import "fmt"

const (
	// Oldest is the first of the versions that this program knows.
	Oldest uint32 = 1
	// Released is the last that is released, or is to be next.
	Released uint32 = 1
	// Newest is the last of the versions that this program knows.
	Newest = Released
)

// Range is the versions that a program knows.
type Range struct{ Oldest, Newest uint32 }

// Own is that of this program.
func Own() Range { return Range{Oldest, Newest} }

// Has tells whether a version is one of them.
func (r Range) Has(version uint32) bool { return r.Oldest <= version && version <= r.Newest }

// String is how people are told: "1", or "1 to 2".
func (r Range) String() string {
	if r.Oldest == r.Newest {
		return fmt.Sprint(r.Newest)
	}
	return fmt.Sprintf("%d to %d", r.Oldest, r.Newest)
}
