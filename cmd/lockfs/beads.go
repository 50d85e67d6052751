package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"lockfs/formats/beads"
)

// beadsLock is what `lockfs beads check --json` and `acquire --json` print.
type beadsLock struct {
	State     string     `json:"state"` // none, held, stale, malformed
	File      string     `json:"file"`
	Holder    string     `json:"holder,omitempty"`
	PID       int        `json:"pid,omitempty"`
	Hostname  string     `json:"hostname,omitempty"`
	StartedAt *time.Time `json:"started_at,omitempty"`
	Version   string     `json:"version,omitempty"`
	Token     string     `json:"token,omitempty"`   // on a mount of lockfs
	Problem   string     `json:"problem,omitempty"` // why it is malformed
}

func beadsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "beads",
		Short: "Take, release and check the exclusive lock of a beads database, or run a command under it",
		Long: `Take, release and check the exclusive lock of a beads database, the file DIR/.exclusive-lock, or run a command while
holding it. DIR is the database's directory, which mostly is called .beads. While the lock is held, the bd daemon
leaves the database alone.

The lock lives as long as the process that it names. It is stale when its host is this one and the process is gone;
then whoever comes next replaces it. A lock of another host is taken for stale only where a mount of lockfs knows that
it is, and a file that cannot be understood never.

Of all who take the lock at once with this command, exactly one gets it. Anywhere but on a mount of lockfs this holds
for one host, and the locks of dead processes on other hosts have to be removed by hand. Only a mount of lockfs also

  - removes the lock of a process that has ended, whatever host that was on, so that the bd daemon goes on everywhere,
  - refuses to let other programs overwrite a live lock, or remove it from another host (EBUSY),
  - gives each holder a larger token than the last (user.lockfs.token).`,
		Example: `  lockfs beads run .beads --holder ci-runner -- bd update bd-42 --status closed
  lockfs beads acquire .beads --holder my-tool && trap 'lockfs beads release .beads' EXIT`,
	}
	return parent(cmd, beadsAcquireCommand(), beadsReleaseCommand(), beadsCheckCommand(), beadsRunCommand())
}

func beadsAcquireCommand() *cobra.Command {
	var (
		holder, version string
		pid             int
		asJSON          bool
	)
	cmd := &cobra.Command{
		Use:   "acquire DIR --holder NAME [--version V] [--pid PID]",
		Short: "Take the lock of a database for the program that calls this",
		Long: `Take the lock of a database, if nobody has it or its process is gone. It does not wait.

The lock has to name a process that lives for as long as the lock is wanted. That is not this command, which ends at
once, but the program that calls it, such as the shell that runs your script. Where that is too short-lived (each line
of a Makefile has a shell of its own, as has ssh HOST COMMAND; behind sudo or timeout it is those), name another with
--pid, or use lockfs beads run. When the process ends without having released the lock, the lock ends with it.

The exit code is 0 when the lock was taken, 75 when somebody else has it, and 1 for any other error.`,
		Example: `  lockfs beads acquire .beads --holder my-tool --version 1.0.0 && trap 'lockfs beads release .beads' EXIT
  lockfs beads acquire .beads --holder my-daemon --pid "$(cat /run/my-daemon.pid)"`,
		Args: exactly(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := beadsDir(args[0])
			if err != nil {
				return err
			}
			lock, err := newBeadsLock(holder, version)
			if err != nil {
				return err
			}
			if lock.PID, err = lockedFor(cmd, pid, lock.Hostname); err != nil {
				return err
			}
			if err := beads.Acquire(cmd.Context(), dir, lock); err != nil {
				return explainBeads(dir, "not acquired", err)
			}
			described := describeBeads(dir, lock, false)
			if asJSON {
				return printJSON(cmd.OutOrStdout(), described)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Locked by %s until it is released or process %d (%s) ends\n",
				text(holder), lock.PID, processName(lock.PID))
			if described.Token != "" {
				fmt.Fprintf(cmd.OutOrStdout(), "  token: %s\n", described.Token)
			}
			return nil
		},
	}
	addBeadsHolder(cmd, &holder, &version)
	cmd.Flags().IntVar(&pid, "pid", 0, "process of this host that the lock lives with (default: the one that calls this)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func addBeadsHolder(cmd *cobra.Command, holder, version *string) {
	cmd.Flags().StringVar(holder, "holder", "", "name of the program that has the lock, which others are shown (required)")
	cmd.Flags().StringVar(version, "version", "", "its version")
}

func newBeadsLock(holder, version string) (*beads.ExclusiveLock, error) {
	if holder == "" {
		return nil, errors.New("give --holder NAME: others are shown it when they find the database locked")
	}
	return beads.NewExclusiveLock(holder, version)
}

// lockedFor is the process that a lock is to name.
func lockedFor(cmd *cobra.Command, pid int, hostname string) (int, error) {
	if !cmd.Flags().Changed("pid") {
		if pid = os.Getppid(); pid == 0 {
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
	cmd := &cobra.Command{
		Use:   "release DIR [--pid PID]",
		Short: "Release the lock of a database that the calling program has",
		Long: `Release the lock of a database if it names the process that calls this, or one further up, or is stale. With --pid,
if it names that process. A live lock of somebody else stays.

The exit code is 0 when the lock is released, 75 when somebody else has it, and 1 for any other error, also when there
is no lock.`,
		Example: "  lockfs beads release .beads",
		Args:    exactly(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := beadsDir(args[0])
			if err != nil {
				return err
			}
			found, stale, err := beads.Check(dir)
			if err == nil && !mayRelease(found, stale, pid) {
				err = &beads.HeldError{Lock: found}
			}
			if err == nil {
				err = beads.Release(cmd.Context(), dir, found)
			}
			if errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("not released: there is no lock %s; if there was one, somebody removed it",
					word(filepath.Join(dir, beads.FileName)))
			}
			if err != nil {
				return explainBeads(dir, "not released", err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Released the lock of %s\n", text(found.Holder))
			return nil
		},
	}
	cmd.Flags().IntVar(&pid, "pid", 0, "process that the lock names (default: the one that calls this, or one further up)")
	return cmd
}

// mayRelease tells whether a lock is that of the process pid, or if that is 0, of an ancestor of this one or stale.
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

// descendsFrom tells whether this process was started by another, or by one that was.
func descendsFrom(pid int) bool {
	for ancestor := os.Getppid(); ancestor > 0; ancestor = parentOf(ancestor) {
		if ancestor == pid {
			return true
		}
	}
	return false
}

// parentOf answers 0 if it cannot be told.
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
	return text(strings.TrimSuffix(string(name), "\n"))
}

func beadsCheckCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "check DIR",
		Short: "Show who has the lock of a database, and whether it is stale",
		Long: `Show who has the lock of a database. Nothing is changed: a stale lock stays until the next one replaces it.

The exit code is 0 when there is no lock or it is stale, 75 when somebody has it, and 1 for any other error, also when
the file cannot be understood: then the bd daemon leaves the database alone, too.`,
		Example: `  lockfs beads check .beads
  lockfs beads check .beads --json | jq -r .holder`,
		Args: exactly(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := beadsDir(args[0])
			if err != nil {
				return err
			}
			found, stale, err := beads.Check(dir)
			var malformed *beads.MalformedError
			if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.As(err, &malformed) {
				return err
			}
			described := describeBeads(dir, found, stale)
			if malformed != nil {
				described.State, described.Problem = "malformed", malformed.Err.Error()
			}
			if asJSON {
				if err := printJSON(cmd.OutOrStdout(), described); err != nil {
					return err
				}
			} else if malformed == nil {
				fmt.Fprintln(cmd.OutOrStdout(), described.line())
			}
			switch {
			case malformed != nil:
				return explainBeads(dir, "cannot tell who has the lock", err)
			case described.State == "held":
				return &exitStatus{code: exitBlocked}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// describeBeads takes nil for no lock.
func describeBeads(dir string, lock *beads.ExclusiveLock, stale bool) beadsLock {
	path := filepath.Join(dir, beads.FileName)
	if lock == nil {
		return beadsLock{State: "none", File: path}
	}
	state := "held"
	if stale {
		state = "stale"
	}
	token, _ := lockToken(path)
	if token != "" {
		if now, err := beads.Read(dir); err != nil || !lock.Same(now) {
			token = "" // it may be that of the next lock
		}
	}
	return beadsLock{
		State: state, File: path, Holder: lock.Holder, PID: lock.PID, Hostname: lock.Hostname,
		StartedAt: &lock.StartedAt, Version: lock.Version, Token: token,
	}
}

func (l beadsLock) line() string {
	switch l.State {
	case "none":
		return "No lock"
	case "stale":
		return fmt.Sprintf("Stale lock of %s: process %d is gone", text(l.Holder), l.PID)
	}
	return fmt.Sprintf("Locked by %s (process %d on %s) since %s",
		text(l.Holder), l.PID, text(l.Hostname), l.StartedAt.Format(time.RFC3339))
}

// lockToken is the fencing token of a lock; empty where there is none.
func lockToken(path string) (string, error) { return lockAttribute(path, "token") }

// lockAttribute is what a mount of lockfs knows of a lock; empty where there is nothing, which is anywhere else.
func lockAttribute(path, name string) (string, error) {
	var value [1024]byte
	n, err := unix.Lgetxattr(path, "user.lockfs."+name, value[:])
	switch {
	case errors.Is(err, unix.ENODATA) || errors.Is(err, unix.ENOTSUP):
		return "", nil
	case err != nil:
		return "", &os.PathError{Op: "getxattr", Path: path, Err: err}
	}
	return string(value[:n]), nil
}

// beadsDir checks that a directory is one in which the daemon looks for the lock, as far as that can be told.
func beadsDir(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("DIR is empty; give the directory of a beads database, mostly .beads")
	}
	info, err := os.Stat(dir)
	if err != nil {
		return "", fmt.Errorf("%w; give the directory of a beads database, mostly .beads", err)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%s is no directory; give that of a beads database, mostly .beads", word(dir))
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	inside := filepath.Join(dir, ".beads")
	if info, err := os.Stat(inside); err == nil && info.IsDir() {
		return "", fmt.Errorf("%s has the database in .beads, where the daemon looks for the lock; give %s", word(dir), word(inside))
	}
	return dir, nil
}

// malformedBeads is an error that nobody can tell who has the lock.
func malformedBeads(dir string, err error) error {
	return fmt.Errorf("%w; look at %s, and correct or remove it", err, word(filepath.Join(dir, beads.FileName)))
}

// explainBeads says what to do about a failure.
func explainBeads(dir, what string, err error) error {
	path := word(filepath.Join(dir, beads.FileName))
	var held *beads.HeldError
	var malformed *beads.MalformedError
	switch {
	case errors.As(err, &held):
		return &exitStatus{exitBlocked, fmt.Errorf("%s: %w; %s", what, err, removeHint(err.Error(), filepath.Join(dir, beads.FileName)))}
	case errors.As(err, &malformed):
		return fmt.Errorf("%s: %w", what, malformedBeads(dir, err))
	case errors.Is(err, unix.EBUSY):
		return &exitStatus{exitBlocked, fmt.Errorf("%s: %w; lockfs knows that somebody has it, see `lockfs locks %s`", what, err, path)}
	case errors.Is(err, beads.ErrChanged):
		return &exitStatus{exitBlocked, fmt.Errorf("%s: %w; see `lockfs beads check %s`", what, err, word(dir))}
	}
	return fmt.Errorf("%s: %w", what, err)
}
