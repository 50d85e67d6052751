package cli

import (
	"errors"
	"fmt"
	"math"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Parent returns a command with subcommands and no action of its own.
func Parent(cmd *cobra.Command, of ...*cobra.Command) *cobra.Command {
	cmd.Args, cmd.RunE = cobra.ArbitraryArgs, needSubcommand
	cmd.AddCommand(of...)
	return cmd
}

// needSubcommand fails with the usage of a command, so that a script without the subcommand does not go on.
func needSubcommand(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unknown subcommand %s%s; see `%s --help`", Word(args[0]), meantCommand(cmd, args[0]), cmd.CommandPath())
	}
	cmd.SetOut(cmd.ErrOrStderr())
	if err := cmd.Usage(); err != nil {
		return err
	}
	return errors.New("give a subcommand")
}

// AnyNumber is the maximum for commands with any number of arguments.
const AnyNumber = math.MaxInt

// Exactly is cobra.RangeArgs with an error that names the missing arguments.
func Exactly(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return fmt.Errorf("usage: %s", cmd.UseLine())
		}
		return nil
	}
}

// WrongFlag adds the right form of a value, or a hint at the help, to a flag error.
func WrongFlag(cmd *cobra.Command, err error) error {
	hint := meantFlag(cmd, err)
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		switch invalid.GetFlag().Value.Type() {
		case "duration":
			hint = "; write it like 90s, 10m or 24h"
		case "int", "uint", "uint32", "uint64":
			hint = "; write it as a whole number, like 1000"
		}
	}
	return fmt.Errorf("%w%s; see `%s --help`", err, hint, cmd.CommandPath())
}
