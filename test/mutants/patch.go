package mutants

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Patch is a change of the sources.
type Patch struct {
	Name string // of its file, without .patch
	What string // the effect on the program

	changes []change
}

// change is a change in one place.
type change struct {
	of       string // a package's folder or a file, from the root of the repository
	new      bool   // the file is added
	old, now string // lines
}

// Sets of patches.
const (
	Faults = "faults" // each must be found by a test (test/mutants/check)
	Hooks  = "hooks"  // moments and settings for tests
	Next   = "next"   // a next cluster version
)

// Read returns the patches of a set, by name.
func Read(root, set string) ([]Patch, error) {
	paths, err := filepath.Glob(filepath.Join(root, "test/mutants", set, "*.patch"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s has no patches in test/mutants/%s", root, set)
	}
	var patches []Patch
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		p, err := parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		p.Name = strings.TrimSuffix(filepath.Base(path), ".patch")
		patches = append(patches, p)
	}
	return patches, nil
}

func parse(text string) (Patch, error) {
	what, rest, _ := strings.Cut(text, "\n")
	p := Patch{What: what}
	number := 1
	for line := range strings.Lines(rest) {
		number++
		of, changes := strings.CutPrefix(line, "--- ")
		file, comes := strings.CutPrefix(line, "+++ ")
		switch {
		case changes:
			p.changes = append(p.changes, change{of: strings.TrimSpace(of)})
		case comes:
			p.changes = append(p.changes, change{of: strings.TrimSpace(file), new: true})
		case line == "\n":
		case len(p.changes) == 0:
			return p, fmt.Errorf("line %d is of no change: a line \"--- FOLDER\" is missing", number)
		default:
			if !p.changes[len(p.changes)-1].add(line[0], line[1:]) {
				return p, fmt.Errorf("line %d begins with neither \" \", \"-\" nor \"+\"", number)
			}
		}
	}
	for _, c := range p.changes {
		if c.old == c.now || c.new != (c.old == "") {
			return p, fmt.Errorf("a change of %s says not where, or changes nothing", c.of)
		}
	}
	if what == "" || len(p.changes) == 0 {
		return p, errors.New("it says not what it changes")
	}
	return p, nil
}

// add adds a line. It returns false for an unknown kind of line.
func (c *change) add(kind byte, content string) bool {
	switch kind {
	case ' ':
		c.old += content
		c.now += content
	case '-':
		c.old += content
	case '+':
		c.now += content
	default:
		return false
	}
	return true
}
