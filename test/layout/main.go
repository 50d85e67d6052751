// Command layout shows the dependencies between the files of each package.
//
//	go run ./test/layout [-v] [-most PERCENT] [-few N] [PACKAGE ...]
//
// A file uses another one if it names a function, type, variable, constant, method or field declared there.
// The command looks for the best order of the files. For each package it prints the number of files, the uses
// between them, how many of these lead back in this order, and how many files are in circles. A circle is a
// set of files that all lead to each other. If no use leads back, a reader can take one file after the other.
//
// With -v the command prints the order, from the top, and the uses that lead back. With -most it fails for
// a package with a larger share of such uses, unless they are at most as many as -few. Tests, generated
// code and doc.go do not count.
package main

import (
	"flag"
	"fmt"
	"os"

	"golang.org/x/tools/go/packages"
)

func main() {
	verbose := flag.Bool("v", false, "print the order of the files and the uses that run back up")
	most := flag.Float64("most", 100, "fail if a larger share of a package's uses runs back up, in percent")
	few := flag.Int("few", 0, "so many uses may run back up in any package")
	flag.Parse()
	patterns := flag.Args()
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	loaded, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax}, patterns...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "layout:", err)
		os.Exit(1)
	}
	if packages.PrintErrors(loaded) > 0 {
		os.Exit(1)
	}
	fmt.Printf("%-50s %6s %6s %6s %9s  %s\n", "package", "files", "uses", "up", "in circle", "types with most methods (methods/files)")
	failed := false
	for _, p := range loaded {
		g := read(p)
		if len(g.files) == 0 {
			continue
		}
		order := g.order()
		up := g.backUp(order)
		circles := g.circles()
		inCircles := 0
		for _, c := range circles {
			inCircles += len(c)
		}
		fmt.Printf("%-50s %6d %6d %6d %9d  %s\n", p.PkgPath, len(g.files), g.count(), len(up), inCircles, largest(p))
		if *verbose {
			g.print(order, up, circles)
		}
		if len(up) > *few && float64(len(up)) > *most/100*float64(g.count()) {
			fmt.Fprintf(os.Stderr, "layout: in %s more than %g %% of the uses between files run back up; see go run ./test/layout -v %[1]s\n", p.PkgPath, *most)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}
