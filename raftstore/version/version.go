// Package version says which versions of a cluster this program can be part of.
//
// The version of a cluster is a number in its replicated state: what may be in its log, its snapshots and its messages. A program
// knows a range of them. The cluster runs at one that all its members know, and is raised by one when all know the next; it never
// goes back. So what a version has added is proposed only when nobody is left who does not know it, and until then all members can
// go back to the program before.
package version

import "fmt"

// Oldest and Newest are the versions that this program knows.
const (
	Oldest uint32 = 1
	Newest uint32 = 1
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
