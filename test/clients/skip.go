//go:build ignore

// Skip is a daemon of beads as far as locks go: it prints whether it leaves the database in a directory alone, whose
// lock there is, and what it would log.
package main

import (
	"fmt"
	"os"

	"lockfs/formats/beads"
)

func main() {
	skip, holder, err := beads.ShouldSkipDatabase(os.Args[1])
	fmt.Printf("%v %q %s\n", skip, holder, beads.LogLine(skip, holder, err))
}
