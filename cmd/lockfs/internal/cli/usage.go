package cli

import (
	"cmp"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
)

// connectionAnnotation marks the connection flags.
const connectionAnnotation = "lockfs_connection"

// narrowest and widest limit the width of help. Without a terminal it is the narrowest.
const (
	narrowest = 80
	widest    = 120
)

// Usage sets the layout of help: it fits the terminal, with connection flags below the command's own.
func Usage(root *cobra.Command, footer string) {
	cobra.AddTemplateFunc("ownFlags", func(cmd *cobra.Command) string { return flagUsages(cmd, false) })
	cobra.AddTemplateFunc("connectionFlags", func(cmd *cobra.Command) string { return flagUsages(cmd, true) })
	const flags, global = "{{if .HasAvailableLocalFlags}}", "{{if .HasHelpSubCommands}}"
	before, rest, _ := strings.Cut(root.UsageTemplate(), flags)
	_, after, _ := strings.Cut(rest, global)
	cobra.AddTemplateFunc("footer", func() string { return wrapText(footer, width()) })
	root.SetUsageTemplate(before + "{{with ownFlags .}}\n\nFlags:\n{{.}}{{end}}{{with connectionFlags .}}\n\nGlobal flags:\n{{.}}{{end}}" +
		global + after + "{{if not .HasParent}}{{footer}}{{end}}")
	cobra.AddTemplateFunc("wrapText", func(text string) string { return wrapText(text, width()) })
	cobra.AddTemplateFunc("wrapExamples", func(text string) string { return wrapExamples(text, width()) })
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), "{{.Example}}", "{{.Example | wrapExamples}}", 1))
	root.SetHelpTemplate(strings.Replace(root.HelpTemplate(), "{{. | trimTrailingWhitespaces}}", "{{. | trimTrailingWhitespaces | wrapText}}", 1))
}

func flagUsages(cmd *cobra.Command, connection bool) string {
	shown := pflag.NewFlagSet("", pflag.ContinueOnError)
	shown.SortFlags = cmd.Flags().SortFlags
	cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		if _, is := flag.Annotations[connectionAnnotation]; is == connection {
			shown.AddFlag(flag)
		}
	})
	return strings.TrimRight(shown.FlagUsagesWrapped(width()), " \n")
}

// width returns the width of the terminal, within limits.
func width() int {
	size, err := unix.IoctlGetWinsize(int(os.Stdout.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return narrowest
	}
	return min(max(cmp.Or(int(size.Col), narrowest), narrowest/2), widest)
}

// term matches the first line of a list entry: a word or a flag, at least two spaces, and its explanation.
var term = regexp.MustCompile(`^( +(?:- |\S+(?: \S+)*  +))\S`)

// wrapText wraps the paragraphs and lists of a help text. Other indented lines, such as commands, stay.
func wrapText(text string, width int) string {
	var lines []string
	hang, open := "", false // of the current paragraph or entry
	for line := range strings.SplitSeq(text, "\n") {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		entry := term.FindStringSubmatch(line)
		switch {
		case line == "":
			open = false
		case open && indent == len(hang) && entry == nil:
			lines[len(lines)-1] += " " + line[indent:]
			continue
		case indent == 0:
			hang, open = "", true
		case entry != nil:
			hang, open = strings.Repeat(" ", len(entry[1])), true
		default:
			open = false
		}
		lines = append(lines, line)
	}
	for i, line := range lines {
		if entry := term.FindStringSubmatch(line); entry != nil {
			lines[i] = wrapLine(line, strings.Repeat(" ", len(entry[1])), width)
		} else if !strings.HasPrefix(line, " ") {
			lines[i] = wrapLine(line, "", width)
		}
	}
	return strings.Join(lines, "\n")
}

// wrapLine wraps a line and indents its continuation by hang.
func wrapLine(line, hang string, width int) string {
	var b strings.Builder
	for len(line) > width {
		at := strings.LastIndexByte(line[:width+1], ' ')
		if at <= len(hang) || strings.TrimSpace(line[:at]) == "" {
			break
		}
		b.WriteString(strings.TrimRight(line[:at], " ") + "\n")
		line = hang + strings.TrimLeft(line[at:], " ")
	}
	return b.String() + line
}

// wrapExamples breaks long commands before a flag or an operator.
func wrapExamples(text string, width int) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		for len(line) > width {
			at := breakOf(line, width-len(" \\"))
			if at == 0 {
				break
			}
			lines = append(lines, line[:at]+" \\")
			line = "      " + line[at+1:]
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// breakOf returns the last space before a flag or operator within most bytes, outside of quotes and comments;
// 0 without one.
func breakOf(line string, most int) (at int) {
	quote := byte(0)
	for i := range min(len(line), most+1) {
		switch c := line[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '#' && line[i-1] == ' ':
			return at
		case c == ' ' && i > 2 && slices.ContainsFunc([]string{" --", " | ", " && ", " -"}, func(s string) bool { return strings.HasPrefix(line[i:], s) }):
			if strings.TrimSpace(line[:i]) != "" {
				at = i
			}
		}
	}
	return at
}
