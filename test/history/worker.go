package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// workerWord, as the first argument, makes the test binary a worker; the second argument is a Plan.
const workerWord = "history-worker"

// Plan is the work of a client in a process of its own, because looks belong to processes. Exactly one of
// Calls, Final and Script is set.
type Plan struct {
	Host   string   `json:"host"`
	Record string   `json:"record"` // file to append to
	Dirs   []string `json:"dirs"`   // one; for Final several, in turn
	Client int      `json:"client"` // its number

	Seed  uint64 `json:"seed"`
	Calls int    `json:"calls"` // random calls
	Pause int    `json:"pause"` // longest pause between two calls, in milliseconds

	// Files are locked at random, instead of other calls; the client may be killed.
	Files []string `json:"files,omitempty"`
	// Holds is the number of names to create or open and lock, instead of other calls.
	Holds int `json:"holds,omitempty"`
	// FSType is the type of the directory's file system; 0: FUSE.
	FSType int64 `json:"fs_type,omitempty"`

	Final bool `json:"final"` // read everything

	// Script is a file, such as a FIFO, with a call on each line: KIND [NAME [NAME|TEXT]]. After each call
	// the worker prints a line with its number: "done 1". It ends after a call of unknown outcome.
	Script string `json:"script"`
}

// Args returns the arguments for the test binary to run a plan.
func (p *Plan) Args() []string {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // a Plan can always be encoded
	}
	return []string{workerWord, string(text)}
}

// Killed reports whether a client that locks files was killed on purpose.
func Killed(err error) bool {
	var ended *exec.ExitError
	if !errors.As(err, &ended) {
		return false
	}
	status, ok := ended.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// Main is for the begin of TestMain. In a process started for a plan it does not return.
func Main() {
	if len(os.Args) != 3 || os.Args[1] != workerWord {
		return
	}
	plan := new(Plan)
	err := json.Unmarshal([]byte(os.Args[2]), plan)
	if err == nil {
		err = plan.do(os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (p *Plan) do(out io.Writer) error {
	recorder, err := NewRecorder(p.Record)
	if err != nil {
		return err
	}
	if p.Final {
		return p.lookAtAll(recorder)
	}
	// A mount and the model treat all looks of one thread through a descriptor alike.
	runtime.LockOSThread()
	c := NewClient(recorder, p.Client, p.Host, p.Dirs[0])
	if p.FSType != 0 {
		c.fsType = p.FSType
	}
	if p.Script != "" {
		return p.follow(c, out)
	}
	random := rand.New(rand.NewPCG(p.Seed, uint64(p.Client)))
	if p.Holds > 0 {
		return c.PlayHolds(random, p.Holds, time.Duration(p.Pause)*time.Millisecond)
	}
	if len(p.Files) > 0 {
		return c.PlayLocks(random, p.Files, p.Calls, time.Duration(p.Pause)*time.Millisecond)
	}
	return c.Play(random, p.Calls, time.Duration(p.Pause)*time.Millisecond)
}

// lookAtAll reads everything in each directory.
func (p *Plan) lookAtAll(recorder *Recorder) error {
	for _, dir := range p.Dirs {
		c := NewClient(recorder, p.Client, p.Host, dir)
		if err := c.Enter(); err != nil {
			return err
		}
		listed, err := c.Do(List)
		if err != nil {
			return err
		}
		names := append([]string(nil), Shared...)
		for name := range listed.Got.Entries {
			names = append(names, name)
		}
		for _, name := range names {
			if err := c.lookAt(name); err != nil {
				return err
			}
		}
		c.Leave()
	}
	return nil
}

func (c *Client) lookAt(name string) error {
	if _, err := c.Do(Stat, name); err != nil {
		return err
	}
	_, file, err := c.Open(Look, name)
	if err != nil || file == nil {
		return err
	}
	defer file.Close()
	if !file.Dir {
		_, err = c.DoFile(Read, file, "")
	}
	return err
}

// follow makes the calls of a script. Its open files are identified by the names at their open.
func (p *Plan) follow(c *Client, out io.Writer) error {
	script, err := os.Open(p.Script)
	if err != nil {
		return err
	}
	if err := c.Enter(); err != nil {
		return err
	}
	files := make(map[string]*File)
	lines := bufio.NewScanner(script)
	for n := 1; lines.Scan(); n++ {
		words := append(strings.Fields(lines.Text()), "", "")
		kind, name, text := Kind(words[0]), words[1], words[2]
		var call *Call
		var err error
		switch kind {
		case Create, Open, Look:
			call, files[name], err = c.Open(kind, name)
		case Write, Append, Truncate, Read, Fstat:
			if files[name] == nil {
				return fmt.Errorf("%s is not open", name)
			}
			call, err = c.DoFile(kind, files[name], text)
		default:
			call, err = c.Do(kind, words[1:3]...)
		}
		if err != nil {
			return err
		}
		if call.Unknown() {
			return nil
		}
		if _, err := fmt.Fprintf(out, "done %d\n", n); err != nil {
			return err
		}
	}
	return lines.Err()
}
