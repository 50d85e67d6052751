package mutants

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Overlay writes the sources with all patches of some sets into a directory, and returns the flag by which go build, go test and go vet take
// them in place of the files below root, the root of the repository.
func Overlay(root, dir string, sets ...string) (flag string, err error) {
	s := sources{root: root, folders: make(map[string][]*source)}
	for _, set := range sets {
		patches, err := Read(root, set)
		if err != nil {
			return "", err
		}
		for _, p := range patches {
			if err := s.apply(p); err != nil {
				return "", err
			}
		}
	}
	return s.write(dir)
}

func (s *sources) write(dir string) (flag string, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	replace := make(map[string]string)
	for _, file := range s.changed() {
		path := filepath.Join(dir, file.path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(path, []byte(file.text), 0o644); err != nil {
			return "", err
		}
		replace[filepath.Join(s.root, file.path)] = path
	}
	list, err := json.MarshalIndent(map[string]any{"Replace": replace}, "", "\t")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return fmt.Sprintf("-overlay=%s", path), os.WriteFile(path, list, 0o644)
}
