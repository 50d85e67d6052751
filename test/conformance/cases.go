package conformance

import "slices"

// A Set is cases that need the same kind of file system.
type Set string

// The sets.
const (
	All      Set = ""
	Full     Set = "full"      // few inodes, none of which is used
	ReadOnly Set = "read-only" // with what ReadOnlyScript made
	Between  Set = "between"   // mounted twice
)

var sets = map[Set][]Case{
	All: slices.Concat(
		openCases, contentCases, nameCases, directoryCases, linkCases, renameCases, nodeCases, modeCases, statCases,
		xattrCases, transferCases, watchCases,
	),
	Full:     fullCases,
	ReadOnly: readOnlyCases,
	Between:  betweenCases,
}
