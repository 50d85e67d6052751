package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockfs/formats/forrst"
)

// Exit codes of `lockfs forrst`, beside 1 for any other error.
const (
	exitNoLock   = 2
	exitNotOwner = 3
)

const forrstExitHelp = `

Exit codes:
  0  done
  1  any other error: no server answers, wrong arguments
  2  there is no such lock: it was released, has expired or never was
  3  the lock has another owner`

func forrstCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "forrst",
		Short: "Release and look at locks of the Forrst atomic lock extension",
		Long: `Release and look at the locks of calls that were made through the Forrst endpoint of a server (lockfs server
--forrst-addr). KEY is the full one: lock:FUNCTION:KEY, or lock:KEY if the call asked for the scope global.

The locks are files as well: ls DIR/.forrst shows them on a mount, and lockfs locks .forrst everywhere. What requests were
answered is kept in DIR/.forrst/.replies, for those that come again (lockfs server --forrst-replay).`,
		Example: `  lockfs forrst status lock:billing:report
  lockfs forrst release lock:billing:report --owner 550e8400-e29b-41d4-a716-446655440000`,
	}
	return parent(cmd, forrstReleaseCommand(), forrstForceCommand(), forrstStatusCommand())
}

// forrstFlags are those of every such command.
type forrstFlags struct {
	client forrstClient
	json   bool
}

func (f *forrstFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.client.endpoint, "endpoint", defaultForrstEndpoint, "URL of the endpoint of any of the servers")
	flags.DurationVar(&f.client.timeout, "timeout", 20*time.Second, "how long it may take to answer")
	flags.BoolVar(&f.json, "json", false, "print the result as JSON")
}

// print prints a result, or what an error of the protocol means for the exit code and what to do about it.
func (f *forrstFlags) print(w io.Writer, result any, err error, text string) error {
	known := new(forrst.Error)
	switch {
	case errors.As(err, &known):
		return forrstRefused(known)
	case err != nil:
		return err
	case f.json:
		return printJSON(w, result)
	}
	_, err = fmt.Fprintln(w, text)
	return err
}

func forrstRefused(e *forrst.Error) error {
	switch e.Code {
	case forrst.NotFound:
		return &exitStatus{exitNoLock, fmt.Errorf("%w; KEY is the full one, lock:FUNCTION:KEY or lock:KEY; "+
			"`lockfs locks .forrst` lists the locks", e)}
	case forrst.AlreadyReleased:
		return &exitStatus{exitNoLock, fmt.Errorf("%w; nothing is left to do", e)}
	case forrst.OwnershipMismatch:
		return &exitStatus{exitNotOwner, fmt.Errorf("%w; `lockfs forrst status` says whose it is, "+
			"and `lockfs forrst force-release` takes it from anybody", e)}
	case forrst.Unavailable:
		return fmt.Errorf("%w; try again, or another server with --endpoint", e)
	}
	return e
}

func forrstReleaseCommand() *cobra.Command {
	var flags forrstFlags
	owner := ""
	cmd := &cobra.Command{
		Use:     "release KEY --owner TOKEN",
		Short:   "Release the lock of an owner",
		Long:    `Release a lock that a call left behind with auto_release false. The owner token came with the call's response.` + forrstExitHelp,
		Example: "  lockfs forrst release lock:billing:report --owner 550e8400-e29b-41d4-a716-446655440000",
		Args:    exactly(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if owner == "" {
				return errors.New("--owner: give the token that came with the call's response; without it there is only force-release")
			}
			var result forrst.ReleaseResult
			arguments := forrst.ReleaseArguments{Key: args[0], Owner: owner}
			err := flags.client.call(cmd.Context(), forrst.ReleaseFunction, arguments, &result)
			return flags.print(cmd.OutOrStdout(), result, err, "Released "+word(args[0]))
		},
	}
	cmd.Flags().StringVar(&owner, "owner", "", "the owner token (required)")
	flags.add(cmd.Flags())
	return cmd
}

func forrstForceCommand() *cobra.Command {
	var flags forrstFlags
	cmd := &cobra.Command{
		Use:   "force-release KEY",
		Short: "Release a lock, whoever owns it",
		Long: `Release a lock, whoever owns it. That does not stop its call, which may go on: make sure first that it does no harm.
The release is an event (see lockfs events).` + forrstExitHelp,
		Example: "  lockfs forrst force-release lock:billing:report",
		Args:    exactly(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var result forrst.ForceReleaseResult
			err := flags.client.call(cmd.Context(), forrst.ForceReleaseFunction, forrst.KeyArguments{Key: args[0]}, &result)
			return flags.print(cmd.OutOrStdout(), result, err, "Released "+word(args[0])+" by force")
		},
	}
	flags.add(cmd.Flags())
	return cmd
}

func forrstStatusCommand() *cobra.Command {
	var flags forrstFlags
	cmd := &cobra.Command{
		Use:     "status KEY",
		Short:   "Say who owns a lock, and until when",
		Long:    `Say who owns a lock, and until when. That nobody does is not an error, but has exit code 2.` + forrstExitHelp,
		Example: "  lockfs forrst status lock:billing:report",
		Args:    exactly(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var result forrst.StatusResult
			err := flags.client.call(cmd.Context(), forrst.StatusFunction, forrst.KeyArguments{Key: args[0]}, &result)
			err = flags.print(cmd.OutOrStdout(), result, err, describeStatus(result))
			if err == nil && !result.Locked {
				err = &exitStatus{code: exitNoLock}
			}
			return err
		},
	}
	flags.add(cmd.Flags())
	return cmd
}

func describeStatus(s forrst.StatusResult) string {
	switch {
	case !s.Locked && s.Hint != "":
		return word(s.Key) + " is not locked; " + s.Hint
	case !s.Locked:
		return word(s.Key) + " is not locked"
	}
	return fmt.Sprintf("%s is locked by %s since %s, until %s (%d s left)", word(s.Key), word(s.Owner),
		s.AcquiredAt.Format(time.RFC3339), s.ExpiresAt.Format(time.RFC3339), s.TTLRemaining)
}
