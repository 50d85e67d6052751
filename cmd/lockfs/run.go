package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockfs/formats"
	"lockfs/formats/beads"
	"lockfs/formats/semaphore"
	"lockfs/formats/swarm"
	"lockfs/formats/tower"
)

// runFlags are those of `lockfs run`; not every format has a use for each.
type runFlags struct {
	format, holder         string
	tag                    string
	intent, intentVersion  string
	staleTimeout, interval time.Duration
	ttl                    int64
	wait                   *time.Duration
	nonblock               bool
	grace                  time.Duration
	given                  []string // names of the flags on the command line
}

func runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [--format F] PATH [--wait D | --nonblock] [flags] -- COMMAND [ARG...]",
		Short: "Run a command while holding a lock",
		Long: `Wait for a lock, run a command, keep the lock fresh meanwhile, and release it when the command ends. PATH is a lock
file in any directory; on a mount of lockfs the lock is for all hosts.

Like flock(1) it waits for as long as it takes, unless --wait says how long at most, or --nonblock that it must not
wait at all. It does not poll, on Linux in local file systems and on mounts of lockfs.

The formats, what PATH is, and what becomes of the lock when lockfs itself is killed:

  semaphore  a file (File-Based Semaphore 1.0), renewed at each third of --stale-timeout; it stays until it is stale
  tower      DIR/NAME.lock (tower-fleet v1), renewed by heartbeats; it stays for its --ttl, and until it is stolen
  swarm      DIR/TASK.lock (swarm task lock), extended at each third of its --ttl, after which it ends
  beads      a beads directory, or its .exclusive-lock; it ends with this process
  pid        a file with the number of this process, with which it ends

Of a lock that ends with the process the command is killed, too; for the others it gets SIGTERM.

A stale lock is replaced, but that of tower, for which there is lockfs tower run --force-lock.

` + lostHelp + `

` + runExitHelp,
		Example: `  lockfs run /locks/nightly.lock -- ./backup.sh
  lockfs run --format pid /run/lock/reindex.lock --nonblock -- ./reindex.sh
  lockfs run --format swarm /locks/swarm/locks/task-001.lock --holder worker-0 --ttl 10m --wait 1h -- ./task.sh`,
		Args: pathAndCommand,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			cmd.Flags().Visit(func(flag *pflag.Flag) { f.given = append(f.given, flag.Name) })
			return failed(flagsFromEnvironment(cmd))
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == "" {
				return errors.New("PATH is empty: give that of a lock file")
			}
			wait, err := f.waiting()
			if err != nil {
				return err
			}
			if err := f.check(); err != nil {
				return err
			}
			return f.run(cmd, args[0], wait, args[1:])
		},
	}
	f.add(cmd.Flags())
	cmd.SetFlagErrorFunc(flagError)
	return exits(cmd)
}

func (f *runFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.format, "format", string(formats.Semaphore), "semaphore, tower, swarm, beads or pid")
	flags.Var(durationFlag{&f.wait}, "wait", "how long to wait for the lock (default: for ever)")
	flags.BoolVar(&f.nonblock, "nonblock", false, "do not wait for the lock")
	addGrace(flags, &f.grace)
	flags.StringVar(&f.tag, "tag", "", "semaphore: what the lock is for, for people to read (default: the command's name)")
	flags.DurationVar(&f.staleTimeout, "stale-timeout", semaphore.DefaultStaleTimeout, "semaphore: "+staleTimeoutHelp)
	flags.DurationVar(&f.interval, "retry-interval", semaphore.DefaultRetryInterval,
		"semaphore: how often to try again where nothing tells that the lock has changed")
	flags.StringVar(&f.holder, "holder", "", "tower, swarm, beads: who has the lock (default: HOST-PID)")
	flags.StringVar(&f.intent, "intent", "", "tower: name of the intent (default: the command's name)")
	flags.StringVar(&f.intentVersion, "intent-version", "1", "tower: version of the intent's definition")
	f.ttl = tower.DefaultTTL
	flags.Var(ttlFlag{&f.ttl}, "ttl", "tower, swarm: how long after it was renewed the lock is stale; a plain number is seconds")
}

// only says for which formats a flag is.
var only = map[string][]formats.Format{
	"tag": {formats.Semaphore}, "stale-timeout": {formats.Semaphore}, "retry-interval": {formats.Semaphore},
	"intent": {formats.Tower}, "intent-version": {formats.Tower},
	"ttl":    {formats.Tower, formats.Swarm},
	"holder": {formats.Tower, formats.Swarm, formats.Beads},
}

// check refuses flags that would do nothing. Variables are for all commands, so those may.
func (f *runFlags) check() error {
	for _, flag := range f.given {
		if has := only[flag]; has != nil && !slices.Contains(has, formats.Format(f.format)) {
			return fmt.Errorf("--%s is for the format %v, not for %s", flag, has, f.format)
		}
	}
	return nil
}

func (f *runFlags) waiting() (time.Duration, error) {
	switch {
	case f.nonblock && f.wait != nil && *f.wait != 0:
		return 0, errors.New("give --wait or --nonblock, and not both")
	case f.nonblock:
		return 0, nil
	case f.wait != nil:
		return *f.wait, nil
	}
	return forEver, nil
}

func (f *runFlags) run(cmd *cobra.Command, path string, wait time.Duration, command []string) error {
	named, err := f.named(command[0])
	if err != nil {
		return err
	}
	switch formats.Format(f.format) {
	case formats.Semaphore:
		flags := semaphoreFlags{file: semaphore.File{Tag: named.tag, StaleTimeout: f.staleTimeout, RetryInterval: f.interval}}
		file, err := flags.open(path)
		if err != nil {
			return err
		}
		return runSemaphore(cmd, file, wait, command, f.grace)
	case formats.Tower:
		return f.tower(cmd, path, wait, command, named)
	case formats.Swarm:
		dir, task, err := inDirectory(path)
		if err != nil {
			return err
		}
		ttl := time.Duration(f.ttl) * time.Second
		return runUnder(cmd, swarmTaskLock(swarm.Dir(dir), task, named.holder, ttl, wait), command, f.grace, syscall.SIGTERM)
	case formats.Beads:
		if filepath.Base(path) == beads.FileName {
			path = filepath.Dir(path)
		}
		dir, err := beadsDir(path)
		if err != nil {
			return err
		}
		lock, err := newBeadsLock(named.holder, "")
		if err != nil {
			return err
		}
		return runUnder(cmd, beadsFileLock(dir, lock, wait, checkInterval), command, f.grace, syscall.SIGKILL)
	case formats.PID:
		return runUnder(cmd, pidLock(path, wait), command, f.grace, syscall.SIGKILL)
	}
	return fmt.Errorf("--format %s: it is semaphore, tower, swarm, beads or pid", word(f.format))
}

// names are how a lock speaks of the command.
type names struct{ tag, holder, intent string }

func (f *runFlags) named(command string) (names, error) {
	n := names{f.tag, f.holder, f.intent}
	base := filepath.Base(command)
	if n.tag == "" {
		n.tag = base
	}
	if n.intent == "" {
		n.intent = base
	}
	if n.holder == "" {
		host, err := os.Hostname()
		if err != nil {
			return n, err
		}
		n.holder = fmt.Sprintf("%s-%d", host, os.Getpid())
	}
	return n, nil
}

func (f *runFlags) tower(cmd *cobra.Command, path string, wait time.Duration, command []string, named names) error {
	dir, name, err := inDirectory(path)
	if err != nil {
		return err
	}
	if err := tower.ValidateName(name); err != nil {
		return fmt.Errorf("PATH %s: %w", word(path), err)
	}
	lock := &towerRun{
		towerRequest: towerRequest{intent: named.intent, intentVersion: f.intentVersion, actor: named.holder, ttl: f.ttl, wait: wait},
		grace:        f.grace, locks: tower.Dir{Path: dir, Now: time.Now}, name: name,
	}
	return lock.locked(cmd, command)
}

// inDirectory takes DIR/NAME.lock apart.
func inDirectory(path string) (dir, name string, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return "", "", err
	}
	dir, file := filepath.Split(path)
	name, is := strings.CutSuffix(file, ".lock")
	if !is {
		return "", "", fmt.Errorf("PATH %s: locks of this format are files NAME.lock", word(path))
	}
	return filepath.Clean(dir), name, nil
}
