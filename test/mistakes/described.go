package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// faultFile has the documentation of package fault, which lists what it can do.
const faultFile = "raftstore/fault/fault.go"

// readDescribed answers what package fault says of each mistake.
func readDescribed() (map[string]string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), faultFile, nil, parser.PackageClauseOnly|parser.ParseComments)
	if err != nil {
		return nil, err
	}
	described := make(map[string]string)
	for line := range strings.Lines(file.Doc.Text()) {
		name, what, found := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(line, "\t") && found && !slices.Contains(moments, name) {
			described[name] = strings.TrimSpace(what)
		}
	}
	return described, nil
}

// checkListed answers an error unless the mistakes that are described are those that have a test here.
func checkListed(described map[string]string) error {
	listed := make(map[string]bool)
	for _, m := range all {
		if described[m.name] == "" {
			return fmt.Errorf("%s does not describe the mistake %s", faultFile, m.name)
		}
		listed[m.name] = true
	}
	for name := range described {
		if !listed[name] {
			return fmt.Errorf("nothing is to see the mistake %s: name its tests in test/mistakes/list.go", name)
		}
	}
	return nil
}
