package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"lockfs/test/mutants"
	"lockfs/test/mutants/mutant"
)

// programs are the test binaries of packages, built with all mistakes.
type programs struct{ dir string }

// build builds a test binary for each package, named after the last part of its path.
func (p programs) build(root string, folders []string) error {
	overlay, err := mutants.Overlay(root, filepath.Join(p.dir, "overlay"), mutants.Faults, mutants.Hooks)
	if err != nil {
		return err
	}
	args := []string{"test", "-c", overlay, "-o", p.dir + string(filepath.Separator)}
	for _, folder := range folders {
		args = append(args, "./"+folder)
	}
	command := exec.Command("go", args...)
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// Limits of a run. With a mistake, a test may wait forever.
const (
	runTime   = time.Minute
	hostsTime = 5 * time.Minute
	killTime  = 10 * time.Second // more, for a program without an end of its own
)

// outcome is the result of some tests.
type outcome struct {
	failed string // the first failed test; empty: none
	passed map[string]bool
	took   time.Duration
	output string
}

// sawIt returns the test with the finding; empty: none.
func (o outcome) sawIt(of tests) string {
	if of.onHosts && o.failed == "" && o.passed[of.names[0]] {
		return of.names[0]
	}
	if of.onHosts {
		return ""
	}
	return o.failed
}

var (
	failLine = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)
	passLine = regexp.MustCompile(`(?m)^ *--- PASS: (\S+)`)
	runLine  = regexp.MustCompile(`(?m)^=== (?:RUN|CONT) +(\w+)`)
)

func (t tests) longest() time.Duration {
	if t.onHosts {
		return hostsTime
	}
	return runTime
}

// pattern returns the names for go test, with one part for each level of subtests.
func (t tests) pattern() string {
	if t.onHosts {
		return "^" + strings.ReplaceAll(t.names[0], "/", "$/^") + "$"
	}
	return "^(" + strings.Join(t.names, "|") + ")$"
}

// run runs tests with a mistake, or without one if the name is empty.
func (p programs) run(mistake string, of tests) (outcome, error) {
	program, err := filepath.Abs(filepath.Join(p.dir, filepath.Base(of.folder)+".test"))
	if err != nil {
		return outcome{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), of.longest()+killTime)
	defer cancel()
	command := exec.CommandContext(ctx, program, "-test.v", "-test.failfast", "-test.timeout", of.longest().String(), "-test.run", of.pattern())
	command.Dir = of.folder
	if !of.onHosts {
		command.Env = append(os.Environ(), mutant.Variable+"="+mistake)
	}
	began := time.Now()
	printed, err := command.CombinedOutput()
	o := outcome{passed: make(map[string]bool), took: time.Since(began), output: string(printed)}
	if exited := new(exec.ExitError); err != nil && !errors.As(err, &exited) {
		return o, err
	}
	for _, line := range passLine.FindAllStringSubmatch(o.output, -1) {
		o.passed[line[1]] = true
	}
	if err == nil {
		return o, nil
	}
	if line := failLine.FindStringSubmatch(o.output); line != nil {
		o.failed = line[1]
	} else if lines := runLine.FindAllStringSubmatch(o.output, -1); lines != nil { // a timeout
		o.failed = lines[len(lines)-1][1]
	} else {
		return o, fmt.Errorf("the tests of %s ended before one began: %w\n%s", of.folder, err, o.output)
	}
	return o, nil
}
