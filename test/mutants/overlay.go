package mutants

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Overlay writes the sources with all patches of some sets into a directory. It returns the flag by which go
// build, go test and go vet use them in place of the files below root, the root of the repository. It
// regenerates the code of changed messages.
func Overlay(root, dir string, sets ...string) (flag string, err error) {
	if root, err = filepath.Abs(root); err != nil {
		return "", err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	s := sources{root: root, of: make(map[string][]*source)}
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
	replace := make(map[string]string)
	for _, file := range s.changed() {
		path := filepath.Join(dir, file.path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(path, []byte(file.text), 0o644); err != nil {
			return "", err
		}
		made := file.path
		if messages, found := strings.CutSuffix(file.path, ".proto"); found {
			if err := s.generate(dir, file.path); err != nil {
				return "", err
			}
			made = messages + ".pb.go"
		}
		replace[filepath.Join(s.root, made)] = filepath.Join(dir, made)
	}
	list, err := json.MarshalIndent(map[string]any{"Replace": replace}, "", "\t")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return "-overlay=" + path, os.WriteFile(path, list, 0o644)
}

// generate regenerates the code of messages beside their file.
func (s *sources) generate(dir, messages string) error {
	cmd := exec.Command("go", "run", "lockfs/raftstore/storepb/internal/protogen", "-root", dir, messages)
	cmd.Dir = s.root
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", cmd.Args, err, output)
	}
	return nil
}
