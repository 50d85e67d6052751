package protocol

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/formats"
	"lockfs/formats/beads"
)

// waited is the result of a wait. --json prints its exported fields and those of the lock.
type waited struct {
	path    string
	State   string  `json:"state"` // that ended the wait: free, stale; at a timeout held or unreachable
	Seconds float64 `json:"waited_seconds"`
}

func waitCommand() *cobra.Command {
	var (
		timeout *time.Duration
		answer  answer
	)
	cmd := &cobra.Command{
		Use:   "wait PATH [--timeout D]",
		Short: "Wait until a lock is free",
		Long: `Wait until the lock at PATH is free or stale. Another program may acquire it a
moment later: to acquire it yourself, use lockfs run.

lockfs judges the lock by the rule of its format, and on a mount of lockfs by
the state on the mount. For a beads directory (named .beads, or with an
.exclusive-lock) the lock is the file in it. Any other file, directory or
symbolic link at PATH counts as a lock.

On Linux, in local file systems and on mounts of lockfs, the command does not
poll: the kernel reports removals, renames and writes. A mount does not report
writes and renames on other hosts. So the command also looks several times in the
first second, at the time of expiry, and every ten seconds. On network file
systems, and at unreadable files, it looks ten times a second.

` + jsonHelp + `

` + cli.ExitHelp(cli.ExitTimedOut),
		Example: `  lockfs wait /locks/deploy.lock && echo free
  lockfs wait /locks/deploy.lock --timeout 10m --json | jq -r .state`,
		Args:              cli.Exactly(1, 1),
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return cli.Failed(cli.FlagsFromEnvironment(cmd)) },
		RunE: answering(&answer, func(cmd *cobra.Command, args []string) error {
			// SIGTERM and SIGINT have their default action.
			signal.Reset(syscall.SIGINT, syscall.SIGTERM)
			w, err := waitFor(cmd.Context(), args[0], timeout)
			if err != nil {
				return err
			}
			if w.State == "" {
				return cli.Exit(cli.ExitTimedOut, fmt.Errorf("the file system of %s has not answered for %s; the state of the lock is unknown",
					cli.Word(w.path), cli.Setting(*timeout)))
			}
			answer.look = func() (lockState, any) {
				state := lookAt(w.path, 0, 0)
				if state.State != w.State { // acquired by another program meanwhile
					state = lockState{Path: w.path}
				}
				return state, nil
			}
			answer.more = w
			if w.State != string(formats.Free) && w.State != string(formats.Stale) {
				return cli.Exit(cli.ExitTimedOut, fmt.Errorf("%s is %s after %s; %s", cli.Word(w.path), w.State, cli.Setting(*timeout), waitHint(w.path)))
			}
			return nil
		}),
	}
	cmd.Flags().Var(cli.OptionalDuration(&timeout), "timeout", "how long to wait (default: for ever)")
	answer.add(cmd.Flags())
	cmd.SetFlagErrorFunc(cli.FlagError)
	return cli.Exits(cmd)
}

// waitFor returns the last state of the lock. The state is empty if the file system does not answer in time.
func waitFor(ctx context.Context, path string, timeout *time.Duration) (waited, error) {
	if path == "" {
		return waited{}, errors.New("PATH is empty: give the path of a lock file")
	}
	began := time.Now()
	var hangs <-chan time.Time
	if timeout != nil {
		limited, cancel := context.WithTimeout(ctx, *timeout)
		defer cancel()
		ctx = limited
		hangs = time.After(*timeout + answerTime)
	}
	type result struct {
		waited
		err error
	}
	done := make(chan result, 1)
	go func() {
		at := beadsLockIn(path)
		state, err := formats.Wait(ctx, at)
		if errors.Is(err, context.DeadlineExceeded) {
			err = nil
		}
		done <- result{waited{path: at, State: string(state), Seconds: time.Since(began).Seconds()}, explainNoDir(err)}
	}()
	select {
	case r := <-done:
		return r.waited, r.err
	case <-hangs:
		return waited{path: path, Seconds: time.Since(began).Seconds()}, nil
	}
}

// answerTime allows a file system to answer as the wait ends.
const answerTime = 250 * time.Millisecond

// beadsLockIn returns the lock of a beads directory, and any other path unchanged.
func beadsLockIn(path string) string {
	lock := filepath.Join(path, beads.FileName)
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return path
	}
	if absolute, err := filepath.Abs(path); err == nil && filepath.Base(absolute) == ".beads" {
		return lock
	}
	if _, err := os.Lstat(lock); err == nil {
		return lock
	}
	return path
}

// waitHint is removeHint for a path already named. A directory that is not empty gets another hint, since it
// may be other data. For a file too large for a lock, the hint says so.
func waitHint(path string) string {
	if entries, err := os.ReadDir(path); err == nil && len(entries) > 0 {
		return "it is a directory with files, and counts as free once it is gone; check the path"
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && info.Size() > formats.MaxContent {
		return fmt.Sprintf("%v; %s", &formats.TooLargeError{Size: info.Size()}, removeHint(path, path))
	}
	return removeHint(path, path)
}

// explainNoDir adds to the error of a missing directory: a lock may be there once it is mounted.
func explainNoDir(err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return fmt.Errorf("%w; the directory of the lock is missing: create it, or mount its file system", err)
}
