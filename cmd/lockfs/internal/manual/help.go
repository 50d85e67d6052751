package manual

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// HelpCommand is the command help. It shows a chapter, or by fullHelp the help of a command; the chapter
// wins. Unless the output is a terminal, it prints the Markdown.
func HelpCommand(isTerminal func(io.Writer) bool, fullHelp func(*cobra.Command) error) *cobra.Command {
	return &cobra.Command{
		Use:   "help [CHAPTER [PAGE] | COMMAND...]",
		Short: "Show a chapter of the manual or the help of a command",
		Long: `Show a chapter of the manual, or all details and flags of a command. A word that
is both is the chapter. Unless the output is a terminal, chapters are printed as
Markdown.

` + Listing(),
		Example: "  lockfs help locks\n  lockfs help recipes cron\n  lockfs help server inspect",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n\n%s --help lists the commands, and %[2]s help COMMAND shows all flags of one.\n",
					Listing(), cmd.Root().Name())
				return err
			}
			if chapter, is := Find(strings.Join(args, " ")); is {
				return show(cmd, chapter, isTerminal(cmd.OutOrStdout()))
			}
			of, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				if below := pagesOf(args[0]); len(below) > 0 {
					return fmt.Errorf("there is no page %q; see `%s help %s`, which has %s", strings.Join(args[1:], " "), cmd.Root().Name(), args[0],
						strings.Join(below, ", "))
				}
				return fmt.Errorf("there is no command and no chapter %q; the chapters are %s, and `%s --help` lists the commands",
					strings.Join(args, " "), strings.Join(names, ", "), cmd.Root().Name())
			}
			of.InitDefaultHelpFlag()
			return fullHelp(of)
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			of, _, err := cmd.Root().Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var words []string
			switch len(args) {
			case 0:
				words = append(words, names...)
			case 1:
				words = append(words, pagesOf(args[0])...)
			}
			for _, sub := range of.Commands() {
				if sub.IsAvailableCommand() {
					words = append(words, sub.Name())
				}
			}
			return words, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// Names returns the names of the chapters.
func Names() string { return strings.Join(names, ", ") }

// Listing returns the list of chapters for the help of the program.
func Listing() string {
	var b strings.Builder
	b.WriteString("Chapters of the manual, shown by lockfs help CHAPTER:\n")
	for _, chapter := range Chapters()[:len(names)] {
		fmt.Fprintf(&b, "\n  %-10s  %s", chapter.Name, chapter.Summary)
	}
	return b.String()
}

// pagesOf returns the pages of a chapter, each by its own word.
func pagesOf(chapter string) []string {
	var below []string
	for _, page := range pages {
		if of, name, _ := strings.Cut(page, " "); of == chapter {
			below = append(below, name)
		}
	}
	return below
}

func show(cmd *cobra.Command, chapter Chapter, toPeople bool) error {
	out := cmd.OutOrStdout()
	if !toPeople {
		_, err := io.WriteString(out, chapter.Source)
		return err
	}
	writePlain(out, chapter)
	if of, _, err := cmd.Root().Find([]string{chapter.Name}); err == nil && of != cmd.Root() {
		fmt.Fprintf(out, "\nFor the command of that name: %s --help\n", of.CommandPath())
	}
	return nil
}
