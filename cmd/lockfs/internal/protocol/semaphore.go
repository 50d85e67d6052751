package protocol

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockfs/cmd/lockfs/internal/admin"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/formats"
	"lockfs/formats/semaphore"
)

// semaphoreFields are the fields of --json for semaphores only.
type semaphoreFields struct {
	Tag string `json:"tag,omitempty"`
}

// lookAtSemaphore returns a lookup of a semaphore.
func lookAtSemaphore(file semaphore.File) lookup {
	return func() (lockState, any) {
		state := lookAt(file.Path, formats.Semaphore, file.StaleTimeout)
		var fields semaphoreFields
		if lock, _, err := file.Read(); err == nil {
			fields.Tag = lock.Tag
		}
		return state, fields
	}
}

const semaphoreStaleHelp = `A lock is stale when its timestamp is older than --stale-timeout; the next
caller then replaces it. A file that cannot be parsed may be one that is being
written: it counts as held and is never stale. On a mount of lockfs,
--stale-timeout does not apply: the timeout there is one hour, or the value of a
rule (lockfs rule set PATTERN --stale-after D), judged on all hosts by the
cluster's clock.`

const staleTimeoutHelp = "age at which a lock is stale; on a mount of lockfs, rules decide"

func semaphoreCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "semaphore",
		Short: "Acquire, release or check File-Based Semaphores",
		Long: `Use File-Based Semaphores 1.0 in any directory. The lock is a file with lines
pid=, timestamp= and tag=.

` + semaphoreStaleHelp + `

If several programs call this command at once, exactly one acquires the lock,
also when it is stale. On other file systems this holds for one host only. Only a
mount of lockfs also

  - excludes the programs of all hosts, and wakes waiters on other hosts
  - keeps scripts from removing a new lock after they looked at a stale one
  - refuses to remove or overwrite a live lock from another host (EBUSY)
  - gives each holder a larger fencing token (user.lockfs.token)`,
		Example: `  lockfs semaphore run /locks/deploy.lock --tag deploy-v1.2.3 --timeout 10m -- ./deploy.sh
  lockfs semaphore acquire /locks/deploy.lock --timeout 10m && trap 'lockfs semaphore release /locks/deploy.lock' EXIT`,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return cli.Failed(cli.FlagsFromEnvironment(cmd)) },
	}
	cmd.SetFlagErrorFunc(cli.FlagError)
	return cli.Exits(cli.Parent(cmd, cli.Exits(requireMounted(semaphoreAcquireCommand())), cli.Exits(semaphoreReleaseCommand()), cli.Exits(semaphoreCheckCommand()),
		cli.Exits(requireMounted(semaphoreRunCommand()))))
}

// semaphoreFlags are the flags for acquiring a semaphore.
type semaphoreFlags struct {
	file    semaphore.File
	timeout time.Duration
}

func (f *semaphoreFlags) add(flags *pflag.FlagSet) {
	f.addFile(flags)
	flags.DurationVar(&f.timeout, "timeout", 0, "time limit of the wait for the lock")
}

func (f *semaphoreFlags) addStale(flags *pflag.FlagSet) {
	flags.DurationVar(&f.file.StaleTimeout, "stale-timeout", semaphore.DefaultStaleTimeout, staleTimeoutHelp)
}

func (f *semaphoreFlags) addFile(flags *pflag.FlagSet) {
	f.addStale(flags)
	flags.StringVar(&f.file.Tag, "tag", "", "purpose of the lock, for readers")
	flags.DurationVar(&f.file.RetryInterval, "retry-interval", semaphore.DefaultRetryInterval,
		"interval of attempts on file systems without change events")
}

// open checks the flags and returns the lock file at a path.
func (f *semaphoreFlags) open(path string) (semaphore.File, error) {
	switch {
	case path == "":
		return semaphore.File{}, errors.New("PATH is empty: give the path of a lock file")
	case f.timeout < 0:
		return semaphore.File{}, fmt.Errorf("--timeout %v: it must not be negative", f.timeout)
	case f.file.StaleTimeout <= 0:
		return semaphore.File{}, fmt.Errorf("--stale-timeout %v: it must be more than 0", f.file.StaleTimeout)
	case f.file.RetryInterval < 0:
		return semaphore.File{}, fmt.Errorf("--retry-interval %v: it must not be negative", f.file.RetryInterval)
	}
	f.file.Path = path
	return f.file, nil
}

func semaphoreAcquireCommand() *cobra.Command {
	var (
		flags semaphoreFlags
		pid   int
	)
	answer := answer{outcome: outcomeAcquired}
	cmd := &cobra.Command{
		Use:   "acquire PATH [--tag T] [--timeout D] [--pid PID]",
		Short: "Acquire a lock for the calling program",
		Long: `Acquire a lock if it is free or stale. With --timeout the command waits for the
lock; except on network file systems it does not poll.

The lock names the calling program, or with --pid another process. It does not
end with that process: it stays until it is released or stale. A job that runs
longer than the stale timeout needs lockfs semaphore run, which renews the lock.` + cli.More + semaphoreStaleHelp + `

` + waitHelp + `

` + jsonHelp + `

` + cli.ExitHelp(cli.ExitBlocked, cli.ExitTimedOut),
		Example: `  lockfs semaphore acquire /run/nightly.lock --tag nightly || exit
  lockfs semaphore acquire /locks/deploy.lock --timeout 10m && trap 'lockfs semaphore release /locks/deploy.lock' EXIT`,
		Args: cli.Exactly(1, 1),
		RunE: answering(&answer, func(cmd *cobra.Command, args []string) error {
			file, err := flags.open(args[0])
			if err != nil {
				return err
			}
			answer.look = lookAtSemaphore(file)
			if file.PID, err = lockedForHere(cmd, pid); err != nil {
				return err
			}
			warnExposed(cmd.ErrOrStderr(), file.Path)
			lock := semaphoreLock(file, flags.timeout, func() { warnStaleTimeout(cmd, file) })
			lock.notice = newNotice(cmd, answer.asJSON, removable(answer.look))
			token, err := lock.acquire(cmd.Context())
			if err != nil {
				return err
			}
			if err := cli.Keep(cmd.Context()); err != nil {
				return errors.Join(err, lock.giveBack(cmd.Context()))
			}
			answer.token = tokenNumber(token)
			return answer.say(cmd, "Lock acquired: %s\n", cli.Word(file.Path))
		}),
	}
	flags.add(cmd.Flags())
	cmd.Flags().IntVar(&pid, "pid", 0, "process of this host to record in the lock (default: the calling process)")
	answer.add(cmd.Flags())
	return cmd
}

// lockedForHere is lockedFor for this host.
func lockedForHere(cmd *cobra.Command, pid int) (int, error) {
	host, err := os.Hostname()
	if err != nil {
		return 0, err
	}
	return lockedFor(cmd, pid, host)
}

// warnExposed warns of a directory in which all users can remove all locks ("File Permissions").
func warnExposed(warn io.Writer, path string) {
	dir := filepath.Dir(path)
	info, err := os.Stat(dir)
	if err == nil && info.Mode().Perm()&0o002 != 0 && info.Mode()&fs.ModeSticky == 0 {
		fmt.Fprintf(warn, "lockfs: warning: all users may remove the locks in %s; `chmod +t` leaves that to their owners\n", cli.Word(dir))
	}
}

// warnStaleTimeout warns if a --stale-timeout has no effect: on a mount of lockfs, rules decide when the lock
// is stale.
func warnStaleTimeout(cmd *cobra.Command, file semaphore.File) {
	if !cmd.Flags().Changed("stale-timeout") {
		return
	}
	at := func(name string) time.Time {
		value, _ := admin.LockAttribute(file.Path, name)
		at, _ := time.Parse(time.RFC3339Nano, value)
		return at
	}
	expires, renewed := at("expires"), at("renewed")
	timeout := expires.Sub(renewed) - time.Second/2 // timestamps are whole seconds
	if expires.IsZero() || renewed.IsZero() || (timeout-file.StaleTimeout).Abs() <= time.Second {
		return
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "lockfs: warning: --stale-timeout %s has no effect here: on this lockfs mount %s is stale "+
		"after %s; `lockfs rule set PATTERN --stale-after %[1]s` changes that\n", cli.Setting(file.StaleTimeout), cli.Word(file.Path), cli.Setting(timeout.Round(time.Second)))
}

// semaphoreLine describes a lock in one line; nil means no lock.
func semaphoreLine(lock *semaphore.Lock, stale bool) string {
	if lock == nil {
		return "No lock"
	}
	tag := ""
	if lock.Tag != "" {
		tag = " (" + cli.Text(lock.Tag) + ")"
	}
	held := "Held by"
	if stale {
		held = "Stale lock of"
	}
	return fmt.Sprintf("%s process %d%s since %s", held, lock.PID, tag, lock.Time().Format(time.RFC3339))
}

func semaphoreReleaseCommand() *cobra.Command {
	var flags semaphoreFlags
	pid := 0
	answer := answer{outcome: outcomeReleased}
	cmd := &cobra.Command{
		Use:   "release PATH [--pid PID]",
		Short: "Release a lock of the calling program",
		Long: `Release a lock if it names the calling process or one of its ancestors, or is
stale. With --pid, release it if it names that process. A lock of another
process stays. The protocol does not record the host, so two processes with the
same number on two hosts look alike; only a mount of lockfs tells them apart and
refuses.

` + jsonHelp + `

` + cli.ExitHelp(cli.ExitNotOwner, cli.ExitNoLock),
		Example: "  lockfs semaphore release /locks/deploy.lock",
		Args:    cli.Exactly(1, 1),
		RunE: answering(&answer, func(cmd *cobra.Command, args []string) error {
			file, err := flags.open(args[0])
			if err != nil {
				return err
			}
			answer.look = lookAtSemaphore(file)
			warnStaleTimeout(cmd, file)
			found, err := file.Release(cmd.Context(), func(lock *semaphore.Lock) bool {
				return lock.PID == pid || pid == 0 && descendsFrom(lock.PID)
			})
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return cli.Exit(cli.ExitNoLock, fmt.Errorf("not released: there is no lock %s; it may have been removed"+removerHint,
					cli.Word(args[0])))
			case semaphore.Blocks(err):
				return cli.Exit(cli.ExitNotOwner, fmt.Errorf("not released: %w; %s", err, removeHint(err.Error(), args[0])))
			case err != nil:
				return fmt.Errorf("not released: %w", err)
			}
			return answer.say(cmd, "Lock released: %s (process %d)\n", cli.Word(args[0]), found.PID)
		}),
	}
	flags.addStale(cmd.Flags())
	answer.add(cmd.Flags())
	cmd.Flags().IntVar(&pid, "pid", 0, "process in the lock (default: the calling process, or an ancestor)")
	return cmd
}

func semaphoreCheckCommand() *cobra.Command {
	var flags semaphoreFlags
	var answer answer
	cmd := &cobra.Command{
		Use:   "check PATH",
		Short: "Show the holder of a lock and whether it is stale",
		Long: `Show the holder of a lock. The command changes nothing: a stale lock stays until
the next holder replaces it.

` + semaphoreStaleHelp + `

` + jsonHelp + `

The exit code is 0 if the lock is free or stale. ` + cli.ExitHelp(cli.ExitBlocked),
		Example: `  lockfs semaphore check /locks/deploy.lock
  lockfs semaphore check /locks/deploy.lock --json | jq -r .tag`,
		Args: cli.Exactly(1, 1),
		RunE: answering(&answer, func(cmd *cobra.Command, args []string) error {
			file, err := flags.open(args[0])
			if err != nil {
				return err
			}
			warnStaleTimeout(cmd, file)
			answer.look = lookAtSemaphore(file)
			line, held, err := checkSemaphore(file)
			if err != nil {
				return err
			}
			if err := answer.say(cmd, "%s\n", line); err != nil || !held {
				return err
			}
			return &cli.ExitStatus{Code: cli.ExitBlocked}
		}),
	}
	flags.addStale(cmd.Flags())
	answer.add(cmd.Flags())
	return cmd
}

func checkSemaphore(file semaphore.File) (line string, held bool, err error) {
	lock, stale, err := file.Read()
	var malformed *semaphore.MalformedError
	switch {
	case errors.As(err, &malformed):
		return "Not a valid lock: " + cli.Text(malformed.Err.Error()), true, nil
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Stat(filepath.Dir(file.Path)); err != nil {
			return "", false, explainNoDir(err)
		}
	case err != nil:
		return "", false, err
	}
	return semaphoreLine(lock, stale), lock != nil && !stale, nil
}

func semaphoreRunCommand() *cobra.Command {
	var flags semaphoreFlags
	answer := answer{outcome: outcomeAcquired}
	grace := time.Duration(0)
	var command []string
	cmd := &cobra.Command{
		Use:   "run PATH [flags] [--] COMMAND [ARG...]",
		Short: "Run a command while holding a lock",
		Long: `Acquire a lock, run a command, renew the lock meanwhile, and release it when the
command ends. Without --timeout the command does not wait for the lock. The lock
names this process.

lockfs rewrites the timestamp after each third of the stale timeout, so a long
job does not become stale; the token stays. If the host fails, the lock stays
until it is stale.` + cli.More + semaphoreStaleHelp + `

` + lostHelp + `

` + waitHelp + `

` + runJSONHelp + `

` + cli.RunExitHelp(),
		Example: "  lockfs semaphore run /locks/deploy.lock --tag deploy-v1.2.3 --timeout 10m -- ./deploy.sh",
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := flags.open(args[0])
			if err != nil {
				return err
			}
			answer.look = lookAtSemaphore(file)
			lock, err := semaphoreRunLock(cmd, file, flags.timeout)
			if err != nil {
				return err
			}
			lock.notice = newNotice(cmd, answer.asJSON, removable(answer.look))
			return runUnder(cmd, &answer, lock, command, grace)
		},
	}
	flags.add(cmd.Flags())
	addGrace(cmd.Flags(), &grace)
	answer.add(cmd.Flags())
	pathAndCommand(cmd, &command)
	return cli.RunsCommand(cmd)
}

// leastStaleTimeout is the minimum for a renewed lock: timestamps are whole seconds.
const leastStaleTimeout = 3 * time.Second

func semaphoreRunLock(cmd *cobra.Command, file semaphore.File, wait time.Duration) (*fileLock, error) {
	if file.StaleTimeout < leastStaleTimeout {
		return nil, fmt.Errorf("--stale-timeout %v: timestamps are whole seconds, so this lock could be stale before it is renewed; give %v or more",
			file.StaleTimeout, leastStaleTimeout)
	}
	warnExposed(cmd.ErrOrStderr(), file.Path)
	return semaphoreLock(file, wait, func() { warnStaleTimeout(cmd, file) }), nil
}
