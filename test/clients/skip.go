//go:build ignore

// Skip imitates a daemon of beads: it prints whether it skips the database in a directory, the lock's holder,
// and its log line.
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
