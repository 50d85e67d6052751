package protocol

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/cmd/lockfs/internal/cli/worker"
	"lockfs/formats/beads"
)

func beadsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "beads",
		Short: "Acquire, release or check locks of beads databases",
		Long: `Acquire, release or check the exclusive lock of a beads database, the file
DIR/.exclusive-lock, or run a command under it. DIR is the database's directory,
usually .beads. While the lock is held, the bd daemon does not touch the
database.

The lock lives as long as the process that it names. If that process ran on this
host and has ended, the lock is stale and the next caller replaces it. For
processes of other hosts, only a mount of lockfs knows whether they have ended.
A lock file that cannot be parsed is never stale.

If several programs call this command at once, exactly one acquires the lock. On
other file systems this holds for one host only, and you have to remove locks of
ended processes of other hosts by hand. Only a mount of lockfs also

  - removes the lock of an ended process of any host, so that the bd daemon goes
    on everywhere
  - refuses to let other programs overwrite a live lock, or remove it from another
    host (EBUSY)
  - gives each holder a larger fencing token (user.lockfs.token)`,
		Example: `  lockfs beads run .beads --holder ci-runner -- bd update bd-42 --status closed
  lockfs beads acquire .beads --holder my-tool && trap 'lockfs beads release .beads' EXIT`,
	}
	cmd.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return cli.Failed(cli.FlagsFromEnvironment(cmd)) }
	cmd.SetFlagErrorFunc(cli.FlagError)
	return cli.Exits(cli.Parent(cmd, cli.Exits(requireMounted(beadsAcquireCommand())), cli.Exits(beadsReleaseCommand()), cli.Exits(beadsCheckCommand()),
		cli.Exits(requireMounted(beadsRunCommand()))))
}

func beadsAcquireCommand() *cobra.Command {
	var (
		holder, version string
		pid             int
	)
	answer := answer{outcome: outcomeAcquired}
	cmd := &cobra.Command{
		Use:   "acquire DIR --holder NAME [--version V] [--pid PID]",
		Short: "Acquire a database lock for the calling program",
		Long: `Acquire the lock of a database if it is free or its process has ended. The
command does not wait.

The lock names a process that must live as long as you need the lock: by default
the program that calls this command, such as the shell of your script. If that
ends too early (each line of a Makefile has its own shell, as has ssh HOST
COMMAND; sudo and timeout are such callers too), name another process with
--pid, or use lockfs beads run. When the process ends, the lock ends with it.

` + jsonHelp + `

` + cli.ExitHelp(cli.ExitBlocked),
		Example: `  lockfs beads acquire .beads --holder my-tool --version 1.0.0 && trap 'lockfs beads release .beads' EXIT
  lockfs beads acquire .beads --holder my-daemon --pid "$(cat /run/my-daemon.pid)"`,
		Args: cli.Exactly(1, 1),
		RunE: answering(&answer, func(cmd *cobra.Command, args []string) error {
			dir, err := beadsDir(args[0])
			if err != nil {
				return err
			}
			answer.look = lookAtBeads(dir)
			lock, err := newBeadsLock(holder, version)
			if err != nil {
				return err
			}
			if lock.PID, err = lockedFor(cmd, pid, lock.Hostname); err != nil {
				return err
			}
			if err := beads.Acquire(cmd.Context(), dir, lock); err != nil {
				return explainBeads(dir, cli.ExitBlocked, "not acquired", err)
			}
			if err := cli.Keep(cmd.Context()); err != nil {
				return errors.Join(err, giveBackBeads(cmd.Context(), dir, lock))
			}
			token := beadsToken(dir, lock)
			answer.token = tokenNumber(token)
			if token != "" {
				token = "  token: " + token + "\n"
			}
			return answer.say(cmd, "Locked by %s until it is released or process %d (%s) ends\n%s",
				cli.Text(holder), lock.PID, processName(lock.PID), token)
		}),
	}
	addBeadsHolder(cmd, &holder, &version)
	cmd.Flags().IntVar(&pid, "pid", 0, "the lock ends with this process of this host (default: the calling process)")
	answer.add(cmd.Flags())
	return cmd
}

// giveBackBeads releases a lock just acquired. It returns nil if the lock is gone, or another's by now.
func giveBackBeads(ctx context.Context, dir string, lock *beads.ExclusiveLock) error {
	return notReleased(persistently(ctx, func(ctx context.Context) error {
		err := beads.Release(ctx, dir, lock)
		var held *beads.HeldError
		if errors.Is(err, fs.ErrNotExist) || errors.As(err, &held) {
			return nil
		}
		return err
	}))
}

// lockedFor returns the pid to write into a lock: --pid, or the process that called this command.
func lockedFor(cmd *cobra.Command, pid int, hostname string) (int, error) {
	if !cmd.Flags().Changed("pid") {
		if pid = worker.CallerPID(); pid == 0 {
			return 0, errors.New("the program that calls this cannot be seen from here (it is in another pid namespace); " +
				"name a process that can with --pid")
		}
		return pid, nil
	}
	if pid < 1 || !beads.IsProcessAlive(pid, hostname) {
		return 0, fmt.Errorf("--pid %d: there is no such process; name one that lives for as long as the lock is wanted", pid)
	}
	return pid, nil
}

func beadsReleaseCommand() *cobra.Command {
	pid := 0
	answer := answer{outcome: outcomeReleased}
	cmd := &cobra.Command{
		Use:   "release DIR [--pid PID]",
		Short: "Release a database lock of the calling program",
		Long: `Release the lock of a database if it names the calling process or one of its
ancestors, or is stale. With --pid, release it if it names that process. A live
lock of another process stays.

` + jsonHelp + `

` + cli.ExitHelp(cli.ExitNotOwner, cli.ExitNoLock),
		Example: "  lockfs beads release .beads",
		Args:    cli.Exactly(1, 1),
		RunE: answering(&answer, func(cmd *cobra.Command, args []string) error {
			dir, err := beadsDir(args[0])
			if err != nil {
				return err
			}
			answer.look = lookAtBeads(dir)
			found, stale, err := beads.Check(dir)
			if err == nil && !mayRelease(found, stale, pid) {
				err = &beads.HeldError{Lock: found}
			}
			if err == nil {
				err = beads.Release(cmd.Context(), dir, found)
			}
			if errors.Is(err, fs.ErrNotExist) {
				return cli.Exit(cli.ExitNoLock, fmt.Errorf("not released: there is no lock %s; it may have been removed"+removerHint,
					cli.Word(filepath.Join(dir, beads.FileName))))
			}
			if err != nil {
				return explainBeads(dir, cli.ExitNotOwner, "not released", err)
			}
			return answer.say(cmd, "Released the lock of %s\n", cli.Text(found.Holder))
		}),
	}
	answer.add(cmd.Flags())
	cmd.Flags().IntVar(&pid, "pid", 0, "process in the lock (default: the calling process, or an ancestor)")
	return cmd
}

// mayRelease reports whether a lock names the process pid of this host. With pid 0, it reports whether the
// lock is stale or names an ancestor of this process.
func mayRelease(lock *beads.ExclusiveLock, stale bool, pid int) bool {
	if pid == 0 && stale {
		return true
	}
	here, err := os.Hostname()
	if err != nil || !strings.EqualFold(here, lock.Hostname) {
		return false
	}
	return lock.PID == pid || pid == 0 && descendsFrom(lock.PID)
}

// descendsFrom reports whether pid is an ancestor of this process.
func descendsFrom(pid int) bool {
	for ancestor := worker.CallerPID(); ancestor > 0; ancestor = parentOf(ancestor) {
		if ancestor == pid {
			return true
		}
	}
	return false
}

// parentOf returns 0 if /proc does not show the parent.
func parentOf(pid int) int {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ") // after the name
	fields := strings.Fields(rest)
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}

func processName(pid int) string {
	name, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
	if err != nil {
		return "?"
	}
	return cli.Text(strings.TrimSuffix(string(name), "\n"))
}

func beadsCheckCommand() *cobra.Command {
	var answer answer
	cmd := &cobra.Command{
		Use:   "check DIR",
		Short: "Show the holder of a database lock and whether it is stale",
		Long: `Show the holder of a database's lock. The command changes nothing: a stale lock
stays until the next holder replaces it.

` + jsonHelp + `

The exit code is 0 if the lock is free or stale, and 125 if the file cannot be
parsed (the bd daemon then leaves the database alone). ` + cli.ExitHelp(cli.ExitBlocked),
		Example: `  lockfs beads check .beads
  lockfs beads check .beads --json | jq -r .holder`,
		Args: cli.Exactly(1, 1),
		RunE: answering(&answer, func(cmd *cobra.Command, args []string) error {
			dir, err := beadsDir(args[0])
			if err != nil {
				return err
			}
			answer.look = lookAtBeads(dir)
			found, stale, err := beads.Check(dir)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return explainBeads(dir, cli.ExitBlocked, "cannot tell who has the lock", err)
			}
			if err := answer.say(cmd, "%s\n", beadsLine(found, stale)); err != nil || found == nil || stale {
				return err
			}
			return &cli.ExitStatus{Code: cli.ExitBlocked}
		}),
	}
	answer.add(cmd.Flags())
	return cmd
}

// beadsToken returns the fencing token of a lock just acquired. It returns "" without a token, or if another
// holder has replaced the lock meanwhile.
func beadsToken(dir string, lock *beads.ExclusiveLock) string {
	token, _ := lockToken(filepath.Join(dir, beads.FileName))
	if token == "" {
		return ""
	}
	if now, err := beads.Read(dir); err != nil || !lock.Same(now) {
		return ""
	}
	return token
}

// beadsLine describes a lock in one line; nil means no lock.
func beadsLine(lock *beads.ExclusiveLock, stale bool) string {
	switch {
	case lock == nil:
		return "No lock"
	case stale:
		return fmt.Sprintf("Stale lock of %s: process %d is gone", cli.Text(lock.Holder), lock.PID)
	}
	return fmt.Sprintf("Locked by %s (process %d on %s) since %s",
		cli.Text(lock.Holder), lock.PID, cli.Text(lock.Hostname), lock.StartedAt.Format(time.RFC3339))
}
