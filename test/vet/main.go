// Command vet reports the findings of go vet for other systems.
//
//	go run ./test/vet darwin,windows ./formats/...
//
// go vet compiles all dependencies first, with the standard library, for each system, which takes minutes.
// This command reads all of it as source, which takes seconds.
package main

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/analysis/suite/vet"
	"golang.org/x/tools/go/packages"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: vet SYSTEM,... PACKAGE ...")
		os.Exit(2)
	}
	failed := false
	for system := range strings.SplitSeq(os.Args[1], ",") {
		found, err := look(system, os.Args[2:])
		if err != nil {
			fmt.Fprintf(os.Stderr, "vet for %s: %v\n", system, err)
		}
		failed = failed || found || err != nil
	}
	if failed {
		os.Exit(1)
	}
}

// look prints the findings in packages and their tests, built for a system, and reports whether there are
// any.
func look(system string, patterns []string) (found bool, err error) {
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.LoadAllSyntax | packages.NeedModule, Tests: true, Env: append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0"),
	}, patterns...)
	if err != nil {
		return false, err
	}
	if len(loaded) == 0 {
		return false, fmt.Errorf("no packages: %s", strings.Join(patterns, " "))
	}
	if packages.PrintErrors(loaded) > 0 { // what does not compile cannot be judged any further
		return true, nil
	}
	graph, err := checker.Analyze(vet.Suite, loaded, nil)
	if err != nil {
		return false, err
	}
	for _, action := range graph.Roots {
		if action.Err != nil {
			return false, fmt.Errorf("%v: %w", action, action.Err)
		}
		found = found || len(action.Diagnostics) > 0
	}
	return found, graph.PrintText(os.Stderr, -1)
}
