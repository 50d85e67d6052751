package cli

import (
	"errors"
	"fmt"
	"math"
	"slices"

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

// mostTypos is the largest edit distance of a suggestion.
const mostTypos = 2

// KnownCommands is cobra's check for unknown commands, for a program with an action of its own.
func KnownCommands(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("unknown command %q for %q%s; see `%s --help`", args[0], cmd.CommandPath(), meantCommand(cmd, args[0]), cmd.CommandPath())
}

// meanings maps words that users try to commands.
var meanings = map[string]string{
	"lock": "run", "acquire": "run", "exec": "run", "flock": "run", "with": "run",
	"unlock": "rm", "release": "rm", "break": "rm", "delete": "rm", "remove": "rm", "steal": "rm",
	"who": "why", "holder": "why", "explain": "why", "info": "why", "show": "why", "stat": "why", "inspect": "why",
	"ls": "locks", "list": "locks", "ps": "locks",
	"health": "doctor", "check": "doctor", "log": "events", "logs": "events", "history": "events", "watch": "top", "monitor": "top",
	"init": "up", "start": "up", "join": "up", "bootstrap": "up", "install": "up", "stop": "down", "umount": "down", "unmount": "down",
	"cluster": "status", "node": "member", "nodes": "member", "verify": "audit", "dump": "debug",
}

// meantCommand suggests a command by meaning or spelling; empty if none is similar.
func meantCommand(cmd *cobra.Command, word string) string {
	nearest := meanings[word]
	if nearest == "" || cmd.HasParent() {
		cmd.SuggestionsMinimumDistance = mostTypos
		like := cmd.SuggestionsFor(word)
		if len(like) == 0 {
			return ""
		}
		nearest = slices.MinFunc(like, func(a, b string) int { return distance(a, word) - distance(b, word) })
	}
	return fmt.Sprintf(" (did you mean `%s %s`?)", cmd.CommandPath(), nearest)
}

// meantFlag suggests a flag by spelling.
func meantFlag(cmd *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return ""
	}
	like, least := "", mostTypos+1
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if d := distance(flag.Name, unknown.GetSpecifiedName()); d < least && !flag.Hidden {
			like, least = flag.Name, d
		}
	})
	if like == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean --%s?)", like)
}

// distance returns the edit distance of two words in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := before
			if a[i] != b[j] {
				replaced++
			}
			before = row[j+1]
			row[j+1] = min(replaced, row[j]+1, before+1)
		}
	}
	return row[len(b)]
}
