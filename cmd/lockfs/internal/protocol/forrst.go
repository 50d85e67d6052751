package protocol

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/formats"
	"lockfs/formats/forrst"
)

const forrstJSONHelp = `
The fields of the document's results are beside those.

`

func forrstCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "forrst",
		Short: "Check and release locks of the Forrst endpoint",
		Long: `Check and release the locks of calls through the Forrst endpoint of a server
(lockfs server --forrst-addr). KEY is the full key: lock:FUNCTION:KEY, or
lock:KEY for the scope global.

The locks are files too: see ls DIR/.forrst on a mount, or lockfs locks .forrst.
The replies for repeated requests are in DIR/.forrst/.replies (lockfs server
--forrst-replay).`,
		Example: `  lockfs forrst status lock:billing:report
  lockfs forrst release lock:billing:report --owner 550e8400-e29b-41d4-a716-446655440000`,
	}
	cmd.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return cli.Failed(cli.FlagsFromEnvironment(cmd)) }
	cmd.SetFlagErrorFunc(cli.FlagError)
	return cli.Exits(cli.Parent(cmd, cli.Exits(forrstReleaseCommand()), cli.Exits(forrstForceCommand()), cli.Exits(forrstStatusCommand())))
}

// forrstFlags are the flags of each forrst command.
type forrstFlags struct {
	client forrstClient
	answer answer
}

func (f *forrstFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.client.endpoint, "endpoint", cli.DefaultForrstEndpoint, "URL of the endpoint of any of the servers")
	flags.DurationVar(&f.client.timeout, "timeout", 20*time.Second, "time limit for the reply")
	f.answer.add(flags)
}

// ask calls a function, and translates its result into the lock state of all formats.
func (f *forrstFlags) ask(cmd *cobra.Command, function, key string, arguments, result any) error {
	state := lockState{Format: formats.Forrst.String(), Path: ".forrst/" + key}
	f.answer.look = func() (lockState, any) { return state, forrst.KeyArguments{Key: key} }
	err := f.client.call(cmd.Context(), function, arguments, result)
	known := new(forrst.Error)
	if !errors.As(err, &known) {
		f.answer.more = result
		if status, is := result.(*forrst.StatusResult); is && err == nil {
			state.status(status)
		} else if err == nil {
			state.State = string(formats.Free)
		}
		return err
	}
	err = forrstRefused(known)
	var exit *cli.ExitStatus
	switch errors.As(err, &exit); {
	case exit == nil:
	case exit.Code == cli.ExitNoLock:
		state.State = string(formats.Free)
	case exit.Code == cli.ExitNotOwner:
		state.State = string(formats.Held)
	}
	return err
}

func (s *lockState) status(of *forrst.StatusResult) {
	if s.State = string(formats.Free); of.Locked {
		s.State, s.Holder = string(formats.Held), of.Owner
		s.Expires = &of.ExpiresAt
		s.since(of.AcquiredAt)
	}
}

func forrstRefused(e *forrst.Error) error {
	switch e.Code {
	case forrst.NotFound:
		return cli.Exit(cli.ExitNoLock, fmt.Errorf("%w; KEY is the full one, lock:FUNCTION:KEY or lock:KEY; "+
			"`lockfs locks .forrst` lists the locks", e))
	case forrst.AlreadyReleased:
		return cli.Exit(cli.ExitNoLock, fmt.Errorf("%w; nothing is left to do", e))
	case forrst.OwnershipMismatch:
		return cli.Exit(cli.ExitNotOwner, fmt.Errorf("%w; `lockfs forrst status` shows the owner, "+
			"and `lockfs forrst force-release` releases the lock of any owner", e))
	case forrst.Unavailable:
		return fmt.Errorf("%w; try again, or another server with --endpoint", e)
	}
	return e
}

func forrstReleaseCommand() *cobra.Command {
	flags := forrstFlags{answer: answer{outcome: outcomeReleased}}
	owner := ""
	cmd := &cobra.Command{
		Use:   "release KEY --owner TOKEN",
		Short: "Release the lock of an owner",
		Long: `Release a lock that a call with auto_release false has left. Give the owner
token from the response of that call.

` + jsonHelp + forrstJSONHelp + cli.ExitHelp(cli.ExitNotOwner, cli.ExitNoLock),
		Example: "  lockfs forrst release lock:billing:report --owner 550e8400-e29b-41d4-a716-446655440000",
		Args:    cli.Exactly(1, 1),
		RunE: answering(&flags.answer, func(cmd *cobra.Command, args []string) error {
			if owner == "" {
				return errors.New("--owner: give the token that came with the call's response; without it there is only force-release")
			}
			var result forrst.ReleaseResult
			arguments := forrst.ReleaseArguments{Key: args[0], Owner: owner}
			if err := flags.ask(cmd, forrst.ReleaseFunction, args[0], arguments, &result); err != nil {
				return err
			}
			return flags.answer.say(cmd, "Released %s\n", cli.Word(args[0]))
		}),
	}
	cmd.Flags().StringVar(&owner, "owner", "", "the owner token (required)")
	flags.add(cmd.Flags())
	return cmd
}

func forrstForceCommand() *cobra.Command {
	flags := forrstFlags{answer: answer{outcome: outcomeReleased}}
	cmd := &cobra.Command{
		Use:   "force-release KEY",
		Short: "Release a lock of any owner",
		Long: `Release a lock of any owner. The owner's call may still be running: make sure
first that it does no harm. The release is an event (lockfs events).

` + jsonHelp + forrstJSONHelp + cli.ExitHelp(cli.ExitNoLock),
		Example: "  lockfs forrst force-release lock:billing:report",
		Args:    cli.Exactly(1, 1),
		RunE: answering(&flags.answer, func(cmd *cobra.Command, args []string) error {
			var result forrst.ForceReleaseResult
			if err := flags.ask(cmd, forrst.ForceReleaseFunction, args[0], forrst.KeyArguments{Key: args[0]}, &result); err != nil {
				return err
			}
			return flags.answer.say(cmd, "Released %s by force\n", cli.Word(args[0]))
		}),
	}
	flags.add(cmd.Flags())
	return cmd
}

func forrstStatusCommand() *cobra.Command {
	var flags forrstFlags
	cmd := &cobra.Command{
		Use:   "status KEY",
		Short: "Show the owner and the expiry of a lock",
		Long: `Show the owner and the expiry of a lock. A free lock is not an error, but has
its own exit code.

` + jsonHelp + forrstJSONHelp + cli.ExitHelp(cli.ExitNoLock),
		Example: "  lockfs forrst status lock:billing:report",
		Args:    cli.Exactly(1, 1),
		RunE: answering(&flags.answer, func(cmd *cobra.Command, args []string) error {
			var result forrst.StatusResult
			if err := flags.ask(cmd, forrst.StatusFunction, args[0], forrst.KeyArguments{Key: args[0]}, &result); err != nil {
				return err
			}
			if err := flags.answer.say(cmd, "%s\n", describeStatus(result)); err != nil || result.Locked {
				return err
			}
			return &cli.ExitStatus{Code: cli.ExitNoLock}
		}),
	}
	flags.add(cmd.Flags())
	return cmd
}

func describeStatus(s forrst.StatusResult) string {
	switch {
	case !s.Locked && s.Hint != "":
		return cli.Word(s.Key) + " is not locked; " + s.Hint
	case !s.Locked:
		return cli.Word(s.Key) + " is not locked"
	}
	return fmt.Sprintf("%s is locked by %s since %s, until %s (%d s left)", cli.Word(s.Key), cli.Word(s.Owner),
		s.AcquiredAt.Format(time.RFC3339), s.ExpiresAt.Format(time.RFC3339), s.TTLRemaining)
}
