// Command check builds the program with each mistake of test/mutants/faults and requires a test to find
// it.
//
//	go run ./test/mutants/check [-hosts] [-write FILE] [NAME ...]
//
// For each mistake, or each named one, list.go has the tests to find it, in order of cost. They are
// built with the patches of package mutants. They must pass without a mistake, and one must fail with it. The
// command prints a Markdown table with the failed test and its time; -write writes it to a file. -hosts adds
// the mistakes found only by tests on hosts, as root and in minutes. A mistake without a test, or one that
// no test finds, is an error.
package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
)

func main() {
	write := flag.String("write", "", "write the table of all mistakes to this `file`")
	hosts := flag.Bool("hosts", false, "make those too that only tests on hosts see")
	flag.Parse()
	if err := run(flag.Args(), *hosts, *write); err != nil {
		fmt.Fprintln(os.Stderr, "mistakes:", err)
		os.Exit(1)
	}
}

func run(names []string, hosts bool, write string) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	described, err := readDescribed(root)
	if err == nil {
		err = checkListed(described)
	}
	if err != nil {
		return err
	}
	chosen, err := choose(names, hosts)
	if err != nil {
		return err
	}
	if write != "" && len(chosen) < len(all) {
		return errors.New("-write takes the table of all mistakes: with -hosts, and without names")
	}
	dir, err := os.MkdirTemp("", "mistakes")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	p := programs{dir}
	together := byFolder(chosen)
	if err := p.build(root, slices.Sorted(maps.Keys(together))); err != nil {
		return err
	}
	if err := requirePassing(p, together); err != nil {
		return err
	}
	seen, err := seeAll(p, chosen)
	if err != nil {
		return err
	}
	for i := range seen {
		seen[i].what = described[seen[i].name]
	}
	if write != "" {
		return os.WriteFile(write, []byte(table(seen)), 0o644)
	}
	fmt.Print(table(seen))
	return nil
}

// choose returns the mistakes of these names, or all, if a test can find them.
func choose(names []string, hosts bool) (chosen []mistake, err error) {
	if len(names) == 0 {
		return slices.DeleteFunc(slices.Clone(all), func(m mistake) bool { return !hosts && m.onlyOnHosts() }), nil
	}
	for _, name := range names {
		i := slices.IndexFunc(all, func(m mistake) bool { return m.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no mistake is called %q", name)
		}
		if !hosts && all[i].onlyOnHosts() {
			return nil, fmt.Errorf("only tests on hosts see %s: -hosts", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

func (m mistake) onlyOnHosts() bool {
	return !slices.ContainsFunc(m.seenBy, func(of tests) bool { return !of.onHosts })
}

// byFolder returns the tests of each package.
func byFolder(chosen []mistake) map[string]tests {
	together := make(map[string]tests)
	for _, m := range chosen {
		for _, of := range m.seenBy {
			names := slices.Concat(together[of.folder].names, of.names)
			slices.Sort(names)
			together[of.folder] = tests{of.folder, slices.Compact(names), of.onHosts}
		}
	}
	return together
}

// requirePassing requires each test to exist and to pass without a mistake.
func requirePassing(p programs, together map[string]tests) error {
	return atOnce(slices.Collect(maps.Values(together)), func(_ int, of tests) error {
		if of.onHosts {
			return nil // it compares with the program without the mistake
		}
		o, err := p.run("", of)
		if err != nil {
			return err
		}
		if o.failed != "" {
			return fmt.Errorf("%s in %s fails without any mistake:\n%s", o.failed, of.folder, o.output)
		}
		for _, name := range of.names {
			if !o.passed[name] {
				return fmt.Errorf("there is no test %s in %s", name, of.folder)
			}
		}
		return nil
	})
}

// seeAll tries each mistake. The error names those not found.
func seeAll(p programs, chosen []mistake) ([]sighting, error) {
	seen := make([]sighting, len(chosen))
	err := atOnce(chosen, func(i int, m mistake) (err error) {
		seen[i], err = see(p, m)
		return err
	})
	return seen, err
}

func see(p programs, m mistake) (sighting, error) {
	s := sighting{mistake: m}
	var asked []string
	for _, of := range m.seenBy {
		o, err := p.run(m.name, of)
		if err != nil {
			return s, err
		}
		s.after += o.took
		if s.folder, s.test = of.folder, o.sawIt(of); s.test != "" {
			fmt.Fprintf(os.Stderr, "%-26s %s in %s, after %.1f s\n", m.name, s.test, s.folder, s.after.Seconds())
			return s, nil
		}
		asked = append(asked, of.names...)
	}
	return s, fmt.Errorf("the mistake %s is not seen by %s", m.name, strings.Join(asked, ", "))
}

// atOnce calls a function for each element, as many at a time as there are processors, and returns all
// errors.
func atOnce[T any](each []T, do func(int, T) error) error {
	errs := make([]error, len(each))
	places := make(chan struct{}, runtime.NumCPU())
	var all sync.WaitGroup
	for i, one := range each {
		places <- struct{}{}
		all.Go(func() {
			errs[i] = do(i, one)
			<-places
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
