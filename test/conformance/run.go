package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A Case is one thing that has to hold.
type Case struct {
	Name string
	Do   func(t *T)
	// Alone is for what changes the whole process, or is slow enough to disturb others.
	Alone bool
}

// Result is what became of a case.
type Result struct {
	Name        string        `json:"name"`
	Failure     string        `json:"failure,omitempty"`
	Differences []Difference  `json:"differences,omitempty"`
	Took        time.Duration `json:"took"`
}

// workerWord makes the test binary do a plan, when it is the first argument; the Plan is the second.
const workerWord = "conformance-worker"

// Plan is which cases are done, and where.
type Plan struct {
	Set     Set    `json:"set"`
	Root    string `json:"root"`    // of a mount
	Lockfs  bool   `json:"lockfs"`  // it is one of lockfs, with the differences
	Outside string `json:"outside"` // a directory of another file system
	Other   string `json:"other"`   // another mount of the same, for Between
	Entries int    `json:"entries"` // of the large directory
}

// Args are the arguments with which the test binary does a plan.
func (p *Plan) Args() []string {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // a Plan always can be
	}
	return []string{workerWord, string(text)}
}

// Main is for the beginning of TestMain. It does not return in a process that was started to do a plan.
func Main() {
	if len(os.Args) != 3 || os.Args[1] != workerWord {
		return
	}
	plan := new(Plan)
	err := json.Unmarshal([]byte(os.Args[2]), plan)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(plan.do())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// atOnce is how many cases are done at the same time, so that a cluster commits several at once.
const atOnce = 8

func (p *Plan) do() []Result {
	cases := sets[p.Set]
	results := make([]Result, len(cases))
	var others sync.WaitGroup
	places := make(chan struct{}, atOnce)
	for i, c := range cases {
		if c.Alone {
			continue
		}
		places <- struct{}{}
		others.Go(func() {
			results[i] = p.try(i, c)
			<-places
		})
	}
	others.Wait()
	for i, c := range cases {
		if c.Alone {
			results[i] = p.try(i, c)
		}
	}
	return results
}

// dirOf is the directory of a case.
func (p *Plan) dirOf(number int) string {
	if p.Set == ReadOnly {
		return filepath.Join(p.Root, "prepared")
	}
	return filepath.Join(p.Root, fmt.Sprintf("case-%d", number))
}

// try does a case in a new directory, which it enters: paths are relative. That, as the users that a case
// becomes, is of one thread; the thread ends with the case.
func (p *Plan) try(number int, c Case) Result {
	t := &T{plan: p, dir: p.dirOf(number)}
	start := time.Now()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer t.cleanUp()
		runtime.LockOSThread()
		if err := t.enter(); err != nil {
			t.Errorf("enter %s: %v", t.dir, err)
			return
		}
		c.Do(t)
	}()
	<-ended
	slices.Sort(t.differences)
	return Result{
		Name: c.Name, Failure: t.failure, Differences: slices.Compact(t.differences), Took: time.Since(start),
	}
}

// dirMode is the mode of a case's directory: every user may do everything in it.
const dirMode = 0o777

func (t *T) enter() error {
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return err
	}
	unix.Umask(0)
	if err := unix.Mkdir(t.dir, dirMode); err != nil && t.plan.Set != ReadOnly {
		return err
	}
	return unix.Chdir(t.dir)
}
