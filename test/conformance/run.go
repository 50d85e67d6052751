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

// A Case is one property to check.
type Case struct {
	Name string
	Do   func(t *T)
	// Alone marks slow cases, and changes of the whole process.
	Alone bool
}

// Result is the result of a case.
type Result struct {
	Name        string        `json:"name"`
	Failure     string        `json:"failure,omitempty"`
	Differences []Difference  `json:"differences,omitempty"`
	Took        time.Duration `json:"took"`
}

// workerWord, as the first argument, makes the test binary run a plan; the second argument is the Plan.
const workerWord = "conformance-worker"

// Plan lists the cases and their directories.
type Plan struct {
	Set     Set    `json:"set"`
	Root    string `json:"root"`    // of a mount
	Lockfs  bool   `json:"lockfs"`  // a lockfs mount, with the differences
	Outside string `json:"outside"` // a directory of another file system
	Other   string `json:"other"`   // another mount of the same file system, for Between
	Entries int    `json:"entries"` // of the large directory
}

// Args returns the arguments for the test binary to run a plan.
func (p *Plan) Args() []string {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // a Plan can always be encoded
	}
	return []string{workerWord, string(text)}
}

// Main is for the begin of TestMain. In a process started for a plan it does not return.
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

// atOnce is the number of concurrent cases, so a cluster commits several at once.
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

// dirOf returns the directory of a case.
func (p *Plan) dirOf(number int) string {
	if p.Set == ReadOnly {
		return filepath.Join(p.Root, "prepared")
	}
	return filepath.Join(p.Root, fmt.Sprintf("case-%d", number))
}

// try runs a case in a new directory, the working directory of its thread: paths are relative. The thread
// also has the case's users, and ends with the case.
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

// dirMode is the mode of a case's directory: all users have all permissions.
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
