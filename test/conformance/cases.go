package conformance

import "slices"

// A Set is a set of cases for the same kind of file system.
type Set string

// The sets.
const (
	All      Set = ""
	Full     Set = "full"      // few inodes, all free
	ReadOnly Set = "read-only" // with the files of ReadOnlyScript
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
