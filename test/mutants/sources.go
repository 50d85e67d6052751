package mutants

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// sources are the files for patches.
type sources struct {
	root string
	of   map[string][]*source // by change.of
}

// source is one file.
type source struct {
	path    string // from the root
	text    string
	changed bool
}

// files returns a named file, or the files of a package without its tests.
func (s *sources) files(of string) ([]*source, error) {
	if files, found := s.of[of]; found {
		return files, nil
	}
	pattern := of
	if filepath.Ext(of) == "" {
		pattern = filepath.Join(of, "*.go")
	}
	paths, err := filepath.Glob(filepath.Join(s.root, pattern))
	if err != nil {
		return nil, err
	}
	var files []*source
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		files = append(files, &source{path: filepath.Join(filepath.Dir(pattern), filepath.Base(path)), text: string(text)})
	}
	s.of[of] = files
	return files, nil
}

// apply applies a patch.
func (s *sources) apply(p Patch) error {
	for i, c := range p.changes {
		files, err := s.files(c.of)
		if err != nil {
			return err
		}
		if c.new {
			if len(files) > 0 {
				return fmt.Errorf("patch %s, change %d: %s is there already", p.Name, i+1, c.of)
			}
			s.of[c.of] = []*source{{path: c.of, text: c.now, changed: true}}
			continue
		}
		var in *source
		places := 0
		for _, file := range files {
			if n := strings.Count("\n"+file.text, "\n"+c.old); n > 0 {
				places += n
				in = file
			}
		}
		if places != 1 {
			return fmt.Errorf("patch %s, change %d: %s has %d places with these lines, and not one: write test/mutants/*/%s.patch anew for\n%s",
				p.Name, i+1, c.of, places, p.Name, c.old)
		}
		in.text = strings.TrimPrefix(strings.Replace("\n"+in.text, "\n"+c.old, "\n"+c.now, 1), "\n")
		in.changed = true
	}
	return nil
}

var packageClause = regexp.MustCompile(`(?m)^package \w+`)

// changed returns the changed files with the import of package mutant. The import is in the line of the
// package clause, so line numbers stay close to the source.
func (s *sources) changed() []*source {
	var changed []*source
	for _, files := range s.of {
		for _, file := range files {
			if !file.changed {
				continue
			}
			if at := packageClause.FindStringIndex(file.text); at != nil && strings.Contains(file.text, "mutant.") {
				file.text = file.text[:at[1]] + `; import "lockfs/test/mutants/mutant"` + file.text[at[1]:]
			}
			changed = append(changed, file)
		}
	}
	slices.SortFunc(changed, func(a, b *source) int { return strings.Compare(a.path, b.path) })
	return changed
}
