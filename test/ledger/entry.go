// Package ledger adds up runs done in pieces, over days and on any machine. Each run adds a line of JSON to a
// file when it ends ([Entry]); command sum prints the sums ([Tables]).
package ledger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// A Kind is a kind of run.
type Kind string

// All kinds.
const (
	Soak   Kind = "soak"       // test/soak
	Worlds Kind = "worlds"     // test/run sim: simulated clusters
	Cuts   Kind = "power cuts" // test/run sim: power cuts in each kind of write
	Fuzz   Kind = "fuzz"       // test/run fuzz
	Long   Kind = "long run"   // test/soak long
)

// An Entry is a run. All numbers but the seeds add up.
type Entry struct {
	Kind       Kind                        `json:"kind"`
	Began      time.Time                   `json:"began"`
	Commit     string                      `json:"commit"` // with "+" if the tree had changes
	Seconds    float64                     `json:"seconds"`
	FirstSeed  uint64                      `json:"first_seed,omitempty"`
	LastSeed   uint64                      `json:"last_seed,omitempty"`
	Histories  int64                       `json:"histories,omitempty"` // checked ones
	Undecided  int64                       `json:"undecided,omitempty"` // checks without a result in time
	Operations int64                       `json:"operations,omitempty"`
	Counts     map[string]int64            `json:"counts,omitempty"`   // power cuts in each kind of write, inputs for each parser
	Faults     map[string]int64            `json:"faults,omitempty"`   // by their names
	Left       map[string]int64            `json:"left,omitempty"`     // due faults without a free target
	Coverage   map[string]map[string]int64 `json:"coverage,omitempty"` // how often each fault began at each moment, or during another one
	Findings   []string                    `json:"findings,omitempty"` // failures, and how to repeat them
}

// New returns the entry of a run of this commit, beginning now.
func New(kind Kind) *Entry {
	return &Entry{
		Kind: kind, Began: time.Now().UTC().Truncate(time.Second), Commit: commit(),
		Counts: make(map[string]int64), Faults: make(map[string]int64),
	}
}

// commit returns the commit of this repository, with "+" if anything but ledgers has changed since.
func commit() string {
	head := git("rev-parse", "--short=12", "HEAD")
	if git("status", "--porcelain", "--untracked-files=no", "--", ":/", ":(top,exclude,glob)**/*.jsonl") != "" {
		head += "+"
	}
	return head
}

// git returns the output of git for this repository, or nothing.
func git(args ...string) string {
	said, err := exec.Command("git", args...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(said))
}

// Variable of the environment names the file. A relative path begins at the root of the repository, because
// tests run in the folders of their packages.
const Variable = "LOCKFS_TEST_LEDGER"

// Add records the duration of the run, and adds the run to the file named by the environment, if any.
func (e *Entry) Add() error {
	path := os.Getenv(Variable)
	if path == "" {
		return nil
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(git("rev-parse", "--show-toplevel"), path)
	}
	if e.Seconds == 0 {
		e.Seconds = time.Since(e.Began).Round(time.Second).Seconds()
	}
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	if _, err := file.Write(append(line, '\n')); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}

// Read returns the runs of a file.
func Read(path string) (all []Entry, err error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for i, line := range bytes.Split(content, []byte("\n")) {
		if len(line) == 0 {
			continue
		}
		var e Entry
		decoder := json.NewDecoder(bytes.NewReader(line))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&e); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, i+1, err)
		}
		all = append(all, e)
	}
	return all, nil
}
