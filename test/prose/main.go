// Command prose checks the words of the project: Markdown, the help of all commands, and doc comments.
//
//	go run ./test/prose [-v]
//
// It prints the place and the rule of each fault; rules.go has the rules. exempt.txt lists packages and
// documents with older texts, which may have faults. An exempt text without a fault is a fault, so the list
// can only shrink. With -v the command also prints figures of each text, and the faults of exempt ones.
package main

import (
	_ "embed"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
)

//go:embed exempt.txt
var exemptList string

func main() {
	verbose := flag.Bool("v", false, "print figures of each text, and faults of exempt texts")
	flag.Parse()
	all, err := read()
	if err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(1)
	}
	faults, forgiven := check(all, strings.Fields(exemptList))
	if *verbose {
		for _, s := range all {
			fmt.Printf("%s: %s\n", s.name, s.figures())
		}
		for _, fault := range forgiven {
			fmt.Println("exempt:", fault)
		}
	}
	for _, fault := range faults {
		fmt.Println(fault)
	}
	if len(faults) > 0 {
		fmt.Fprintf(os.Stderr, "prose: %d faults; CONTRIBUTING.md has the rules (Words)\n", len(faults))
		os.Exit(1)
	}
}

// read reads all texts of the repository.
func read() (all []source, err error) {
	for _, from := range []func() ([]source, error){documents, help, packages} {
		sources, err := from()
		if err != nil {
			return nil, err
		}
		all = append(all, sources...)
	}
	return all, nil
}

// check returns the faults of the texts, and those of the exempt ones. An exempt text without a fault is a
// fault.
func check(all []source, exempt []string) (faults, forgiven []string) {
	missing := slices.Clone(exempt)
	for _, s := range all {
		found := s.faults()
		switch {
		case !slices.Contains(exempt, s.name):
			faults = append(faults, found...)
		case len(found) == 0:
			faults = append(faults, s.name+": it passes: remove it from test/prose/exempt.txt")
		default:
			forgiven = append(forgiven, found...)
		}
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == s.name })
	}
	for _, name := range missing {
		faults = append(faults, name+": it does not exist: remove it from test/prose/exempt.txt")
	}
	return faults, forgiven
}
