// Package version has the versions of a cluster supported by this program.
//
// The version of a cluster is a number in its replicated state. It determines the possible contents of the
// log, snapshots and messages. A program supports a range of versions. The cluster runs at a version known to
// all members and mounts. It is raised by one when all know the next, and never lowered. So additions of a
// version are proposed only when every program knows them. Until then all hosts can go back to the previous
// program.
//
// # The next version
//
// Package codec has a table of the operations, fields and values added by each version. A program does not
// know those later than Newest. To release a version, raise Released and keep its data beside that of earlier
// versions (package goldendata). Tests upgrade a cluster to a next version and its program, which exist only
// in test/mutants/next.
package version

import "fmt"

const (
	// Oldest is the first version known to this program.
	Oldest uint32 = 1
	// Released is the last released version, or the next to be released.
	Released uint32 = 1
	// Newest is the last version known to this program.
	Newest = Released
)

// Range is the versions known to a program.
type Range struct{ Oldest, Newest uint32 }

// Own returns the range of this program.
func Own() Range { return Range{Oldest, Newest} }

// Has reports whether a version is in the range.
func (r Range) Has(version uint32) bool { return r.Oldest <= version && version <= r.Newest }

// String formats a range: "1", or "1 to 2".
func (r Range) String() string {
	if r.Oldest == r.Newest {
		return fmt.Sprint(r.Newest)
	}
	return fmt.Sprintf("%d to %d", r.Oldest, r.Newest)
}
