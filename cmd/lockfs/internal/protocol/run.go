package protocol

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockfs/cmd/lockfs/internal/cli"
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
	slots                  int     // 0: PATH is one lock
	oncePer                *period // nil: whenever the lock is free
	retry                  bool
	force                  bool // steal a stale lock of tower
	answer                 answer
	given                  []string // names of the flags on the command line
}

func runCommand() *cobra.Command {
	f := runFlags{answer: answer{outcome: outcomeAcquired}}
	cmd := &cobra.Command{
		Use:   "run [--format F] PATH [--wait D | --nonblock] [flags] -- COMMAND [ARG...]",
		Short: "Run a command while holding a lock",
		Long: `Wait for a lock, run a command, keep the lock fresh meanwhile, and release it when the command ends. PATH is a lock
file in any directory; on a mount of lockfs the lock is for all hosts.

Like flock(1) it waits for as long as it takes, unless --wait says how long at most, or --nonblock that it must not
wait at all. It does not poll, on Linux in local file systems and on mounts of lockfs.

The formats, what PATH is, and what becomes of the lock when the host fails:

  semaphore  a file (File-Based Semaphore 1.0), renewed at each third of --stale-timeout; it stays until it is stale
  tower      DIR/NAME.lock (tower-fleet v1), renewed by heartbeats; it stays for its --ttl, and until it is stolen
  swarm      DIR/TASK.lock (swarm task lock), extended at each third of its --ttl, after which it ends
  beads      a beads directory, or its .exclusive-lock; it stays until the host is back
  pid        a file with the pid of the lockfs-worker process; it stays until the host is back

A stale lock is replaced, but that of tower only with --force-lock.

` + waitHelp + `

--slots N lets N hold the lock at a time, on all hosts together. PATH is a directory then, which is made if it is
not there, and the locks are the files slot-1.lock to slot-N.lock in it: whoever asks for fewer slots has fewer of
the same. Who waits gets one in the order in which they came, which a mount of lockfs keeps between hosts; who does
not wait may pass them.

--once-per D runs the command once in each period of that length, on whichever host comes first, however late and by
whatever clock its cron starts it: the time is that of PATH's file system, on a mount of lockfs the cluster's.
Periods of a duration are counted from 1970 in UTC, so those of 1h begin with each hour; day@03:00 begins at three
o'clock in UTC, day@03:00@Europe/Berlin there. The turn is that of the moment at which lockfs was started. PATH is a
file that says who had the last turn and what became of it, for people to read and for lockfs to go by; PATH.lock is
the lock that the command runs under. A turn is over when a run has begun; with --retry, when one has succeeded. Who
comes when it is over, or waits as it begins, ends with 77 at once, and says so on a terminal only, as cron sends mail
of what is said. That one of before still runs is told after five seconds.

` + lostHelp + `

` + runJSONHelp + `

` + cli.RunExitHelp(cli.ExitTurnOver),
		Example: `  lockfs run /locks/nightly.lock -- ./backup.sh
  lockfs run --format pid /run/lock/reindex.lock --nonblock -- ./reindex.sh
  lockfs run --slots 3 --format pid /locks/builds -- make
  lockfs run --once-per day@03:00 --retry /locks/nightly -- ./backup.sh
  lockfs run --format swarm /locks/swarm/locks/task-001.lock --holder worker-0 --ttl 10m --wait 1h -- ./task.sh`,
		Args: pathAndCommand,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			cmd.Flags().Visit(func(flag *pflag.Flag) { f.given = append(f.given, flag.Name) })
			return cli.Failed(cli.FlagsFromEnvironment(cmd))
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
	cmd.SetFlagErrorFunc(cli.FlagError)
	return cli.RunsCommand(cli.Exits(cmd))
}

func (f *runFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.format, "format", formats.Semaphore.String(), "semaphore, tower, swarm, beads or pid")
	flags.Var(cli.OptionalDuration(&f.wait), "wait", "how long to wait for the lock (default: for ever)")
	flags.BoolVar(&f.nonblock, "nonblock", false, "do not wait for the lock")
	addGrace(flags, &f.grace)
	flags.StringVar(&f.tag, "tag", "", "semaphore: what the lock is for, for people to read (default: the command's name)")
	flags.DurationVar(&f.staleTimeout, "stale-timeout", semaphore.DefaultStaleTimeout, "semaphore: "+staleTimeoutHelp)
	flags.DurationVar(&f.interval, "retry-interval", semaphore.DefaultRetryInterval,
		"semaphore: how often to try again where nothing tells that the lock has changed")
	flags.StringVar(&f.holder, "holder", "", "tower, swarm, beads: who has the lock (default: HOST-PID)")
	flags.StringVar(&f.intent, "intent", "", "tower: name of the intent (default: the command's name)")
	flags.StringVar(&f.intentVersion, "intent-version", "1", "tower: version of the intent's definition")
	flags.IntVar(&f.slots, "slots", 0, "let so many hold the lock at a time")
	flags.Var(periodFlag{&f.oncePer}, "once-per", "run the command once in each period: a duration, day@HH:MM, or day@HH:MM@ZONE")
	flags.BoolVar(&f.retry, "retry", false, "once-per: try again in the same period after a run that failed")
	flags.BoolVar(&f.force, "force-lock", false, "tower: steal the lock if it is stale; one that is active is never stolen")
	f.answer.add(flags)
	f.ttl = tower.DefaultTTL
	flags.Var(ttlFlag{&f.ttl}, "ttl", "tower, swarm: how long after it was renewed the lock is stale; a plain number is seconds")
}

// only says for which formats a flag is.
var only = map[string][]formats.Format{
	"tag": {formats.Semaphore}, "stale-timeout": {formats.Semaphore}, "retry-interval": {formats.Semaphore},
	"intent": {formats.Tower}, "intent-version": {formats.Tower}, "force-lock": {formats.Tower},
	"ttl":    {formats.Tower, formats.Swarm},
	"holder": {formats.Tower, formats.Swarm, formats.Beads},
}

// kind is 0 for a name that is no format's.
func (f *runFlags) kind() formats.Format {
	format, _ := formats.ParseFormat(f.format)
	return format
}

// check refuses flags that would do nothing. Variables are for all commands, so those may.
func (f *runFlags) check() error {
	for _, flag := range f.given {
		if has := only[flag]; has != nil && !slices.Contains(has, f.kind()) {
			return fmt.Errorf("--%s is for the format %v, not for %s", flag, has, f.format)
		}
	}
	return f.checkTurns()
}

// checkTurns refuses what --slots and --once-per cannot do.
func (f *runFlags) checkTurns() error {
	given := func(flag string) bool { return slices.Contains(f.given, flag) }
	format := f.kind()
	switch {
	case given("slots") && (f.slots < 1 || f.slots > mostSlots):
		return fmt.Errorf("--slots %d: give 1 to %d", f.slots, mostSlots)
	case f.slots != 0 && f.oncePer != nil:
		return errors.New("give --slots or --once-per, and not both")
	case f.slots != 0 && (format == formats.Beads || format == formats.Tower):
		return fmt.Errorf("--slots is for the formats semaphore, swarm and pid, not for %s", format)
	case f.oncePer != nil && format == formats.Beads:
		return fmt.Errorf("--once-per is not for the format %s", format)
	case f.retry && f.oncePer == nil:
		return errors.New("--retry is for --once-per")
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
	lock, err := f.lockOf(cmd, path, wait, command)
	if err != nil {
		return err
	}
	return runUnder(cmd, &f.answer, lock, command, f.grace)
}

// lockOf answers what the command runs under.
func (f *runFlags) lockOf(cmd *cobra.Command, path string, wait time.Duration, command []string) (runLock, error) {
	named, err := f.named(command[0])
	if err != nil {
		return nil, err
	}
	switch {
	case f.slots != 0:
		slots, err := newSlots(path, f.slots, wait, func(path string) (runLock, error) { return f.open(cmd, path, 0, named) })
		if err != nil {
			return nil, err
		}
		f.answer.look = slots.look(f.lookAt)
		slots.notice = newNotice(cmd, f.answer.asJSON, removable(f.answer.look))
		return slots, nil
	case f.oncePer != nil:
		f.answer.look = f.lookupOf(turnLock(path))
		lock, err := f.open(cmd, turnLock(path), wait, named)
		if err != nil {
			return nil, err
		}
		return newTurn(cmd.ErrOrStderr(), path, f.oncePer, f.retry, command, lock)
	}
	f.answer.look = f.lookupOf(path)
	return f.open(cmd, path, wait, named)
}

// lookAt answers what is known of the lock at a path.
func (f *runFlags) lookAt(path string) (lockState, any) {
	format := f.kind()
	switch dir, name, err := inDirectory(path); {
	case format == formats.Tower && err == nil:
		return lookAtTower(tower.Dir{Path: dir, Now: time.Now}, name)()
	case format == formats.Swarm && err == nil:
		return lookAtSwarm(swarm.Dir(dir), name)()
	case format == formats.Beads:
		return lookAtBeads(beadsDirOf(path))()
	case format == formats.Semaphore:
		return lookAtSemaphore(semaphore.File{Path: path, StaleTimeout: f.staleTimeout})()
	}
	return lookAt(path, format, 0), nil
}

// lookupOf is lookAt of one path.
func (f *runFlags) lookupOf(path string) lookup {
	return func() (lockState, any) { return f.lookAt(path) }
}

// open answers the lock at a path, by the rules of the format.
func (f *runFlags) open(cmd *cobra.Command, path string, wait time.Duration, named names) (runLock, error) {
	switch f.kind() {
	case formats.Semaphore:
		flags := semaphoreFlags{file: semaphore.File{Tag: named.tag, StaleTimeout: f.staleTimeout, RetryInterval: f.interval}}
		file, err := flags.open(path)
		if err != nil {
			return nil, err
		}
		return f.withNotice(cmd, path)(semaphoreRunLock(cmd, file, wait))
	case formats.Tower:
		return f.tower(cmd, path, wait, named)
	case formats.Swarm:
		dir, task, err := inDirectory(path)
		if err != nil {
			return nil, err
		}
		return f.withNotice(cmd, path)(swarmTaskLock(swarm.Dir(dir), task, named.holder, time.Duration(f.ttl)*time.Second, wait), nil)
	case formats.Beads:
		dir, err := beadsDir(beadsDirOf(path))
		if err != nil {
			return nil, err
		}
		lock, err := newBeadsLock(named.holder, "")
		if err != nil {
			return nil, err
		}
		return f.withNotice(cmd, dir)(beadsFileLock(dir, lock, wait, checkInterval), nil)
	case formats.PID:
		return f.withNotice(cmd, path)(pidLock(path, wait), nil)
	}
	return nil, fmt.Errorf("--format %s: it is semaphore, tower, swarm, beads or pid", cli.Word(f.format))
}

// beadsDirOf takes the directory of a database, or its lock, for the directory.
func beadsDirOf(path string) string {
	if filepath.Base(path) == beads.FileName {
		return filepath.Dir(path)
	}
	return path
}

// withNotice makes a lock tell for whom it is waited.
func (f *runFlags) withNotice(cmd *cobra.Command, path string) func(*fileLock, error) (runLock, error) {
	return func(lock *fileLock, err error) (runLock, error) {
		if err != nil {
			return nil, err
		}
		lock.notice = f.newNotice(cmd, removable(f.lookupOf(path)))
		return lock, nil
	}
}

func (f *runFlags) newNotice(cmd *cobra.Command, look lookup) *notice {
	n := newNotice(cmd, f.answer.asJSON, look)
	if f.oncePer != nil {
		n.first = turnNoticeAfter
	}
	return n
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

func (f *runFlags) tower(cmd *cobra.Command, path string, wait time.Duration, named names) (runLock, error) {
	dir, name, err := inDirectory(path)
	if err != nil {
		return nil, err
	}
	if err := tower.ValidateName(name); err != nil {
		return nil, fmt.Errorf("PATH %s: %w", cli.Word(path), err)
	}
	lock := &towerRun{
		towerRequest: towerRequest{
			intent: named.intent, intentVersion: f.intentVersion, actor: named.holder, ttl: f.ttl, wait: wait,
			force: f.force, notice: f.newNotice(cmd, forcible(f.lookupOf(path), cmd.CommandPath())),
		},
		answer: &f.answer, locks: tower.Dir{Path: dir, Now: time.Now}, name: name, stderr: cmd.ErrOrStderr(),
	}
	return lock, lock.prepare()
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
		return "", "", fmt.Errorf("PATH %s: locks of this format are files NAME.lock; give such a path", cli.Word(path))
	}
	return filepath.Clean(dir), name, nil
}
