package mutants

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Patch is a change of the sources.
type Patch struct {
	Name string // of its file, without .patch
	What string // the program does or has with it

	changes []change
}

// change is of one place.
type change struct {
	folder   string // of the package, from the root of the repository
	old, new string // lines
}

// Sets of patches.
const (
	Faults = "faults" // each is found by a test (test/mistakes)
	Hooks  = "hooks"  // moments and settings for tests
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
	var c *change
	number := 1
	for line := range strings.Lines(rest) {
		number++
		if folder, found := strings.CutPrefix(line, "--- "); found {
			p.changes = append(p.changes, change{folder: strings.TrimSpace(folder)})
			c = &p.changes[len(p.changes)-1]
			continue
		}
		switch kind, content := line[0], line[1:]; {
		case line == "\n":
		case c == nil:
			return p, fmt.Errorf("line %d is of no change: a line \"--- FOLDER\" is missing", number)
		case kind == ' ':
			c.old += content
			c.new += content
		case kind == '-':
			c.old += content
		case kind == '+':
			c.new += content
		default:
			return p, fmt.Errorf("line %d begins with neither \" \", \"-\" nor \"+\"", number)
		}
	}
	for _, c := range p.changes {
		if c.old == "" || c.old == c.new {
			return p, fmt.Errorf("a change of %s says not where, or changes nothing", c.folder)
		}
	}
	if what == "" || len(p.changes) == 0 {
		return p, fmt.Errorf("it says not what it changes")
	}
	return p, nil
}
