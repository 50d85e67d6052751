package cli

import (
	"cmp"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"lockfs/raftstore/lockjson"
)

// More divides the Long of a command. --help shows the part before it, which fits one screen with the most
// used flags. [FullHelp] and the man page show everything.
const More = "\n\n\f"

// Annotations of flags and commands.
const (
	connectionAnnotation = "lockfs_connection" // a connection flag
	seldomAnnotation     = "lockfs_seldom"     // a flag for FullHelp
	briefAnnotation      = "lockfs/brief"      // the part of Long before More
	fullAnnotation       = "lockfs/full"       // the next help is the full one
)

// narrowest and widest limit the width of help. Without a terminal it is the narrowest.
const (
	narrowest = 80
	widest    = 120
)

// usageTemplate has the parts of help below the Long of a command.
const usageTemplate = `{{if .HasParent}}Usage:
  {{usageLine .}}{{if .HasExample}}

Examples:
{{wrapExamples .Example}}{{end}}{{if .HasAvailableSubCommands}}

Commands:{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{with ownFlags .}}

Flags:
{{.}}{{end}}{{with connectionFlags .}}

Global flags:
{{.}}{{end}}{{with pointer .}}

{{.}}{{end}}{{else}}{{overview}}{{end}}
`

// Usage sets the layout of help: it fits the terminal, with connection flags below the command's own. The
// help of the root ends with the overview. Usage is for a root with all its commands.
func Usage(root *cobra.Command, overview string) {
	each(root, prepareHelp)
	cobra.AddTemplateFuncs(map[string]any{
		"usageLine":       usageLine,
		"ownFlags":        func(cmd *cobra.Command) string { return flagUsages(cmd, false) },
		"connectionFlags": func(cmd *cobra.Command) string { return flagUsages(cmd, true) },
		"pointer":         pointer,
		"overview":        func() string { return overview },
		"long":            func(cmd *cobra.Command) string { return wrapText(long(cmd), width()) },
		"wrapExamples":    func(text string) string { return wrapExamples(text, width()) },
	})
	root.SetUsageTemplate(usageTemplate)
	root.SetHelpTemplate("{{long .}}\n\n{{.UsageString}}")
}

// FullHelp prints the help of a command with all its flags and the text behind [More].
func FullHelp(cmd *cobra.Command) error {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[fullAnnotation] = "1"
	return cmd.Help()
}

// Often leaves all other flags but those of the connection to [FullHelp] and the man page.
func Often(flags *pflag.FlagSet, names ...string) {
	flags.VisitAll(func(flag *pflag.Flag) {
		if _, isConnection := flag.Annotations[connectionAnnotation]; isConnection || slices.Contains(names, flag.Name) {
			return
		}
		if flag.Annotations == nil {
			flag.Annotations = map[string][]string{}
		}
		flag.Annotations[seldomAnnotation] = nil
	})
}

func each(cmd *cobra.Command, do func(*cobra.Command)) {
	do(cmd)
	for _, sub := range cmd.Commands() {
		each(sub, do)
	}
}

// prepareHelp splits the Long of a command, and shortens the durations in its flags: 1h0m0s to 1h.
func prepareHelp(cmd *cobra.Command) {
	if brief, more, is := strings.Cut(cmd.Long, More); is {
		if cmd.Annotations == nil {
			cmd.Annotations = map[string]string{}
		}
		cmd.Annotations[briefAnnotation] = brief
		cmd.Long = brief + "\n\n" + more
	}
	cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		if d, err := time.ParseDuration(flag.DefValue); err == nil && d != 0 {
			flag.DefValue = lockjson.Setting(d)
		}
	})
}

func isFull(cmd *cobra.Command) bool { return cmd.Annotations[fullAnnotation] != "" }

// long returns the text of a command's help.
func long(cmd *cobra.Command) string {
	text := cmp.Or(cmd.Long, cmd.Short)
	if brief := cmd.Annotations[briefAnnotation]; brief != "" && !isFull(cmd) {
		text = brief
	}
	return strings.TrimRight(text, " \n")
}

func usageLine(cmd *cobra.Command) string {
	if cmd.HasAvailableSubCommands() && !strings.Contains(cmd.Use, " ") {
		return cmd.CommandPath() + " COMMAND"
	}
	return cmd.UseLine()
}

// pointer names the full help, if it shows more.
func pointer(cmd *cobra.Command) string {
	more := cmd.Annotations[briefAnnotation] != ""
	cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) { more = more || isSeldom(flag) })
	if !more || isFull(cmd) {
		return ""
	}
	return "All details and flags: lockfs help " + strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
}

func isSeldom(flag *pflag.Flag) bool {
	_, is := flag.Annotations[seldomAnnotation]
	return is
}

func flagUsages(cmd *cobra.Command, connection bool) string {
	shown := pflag.NewFlagSet("", pflag.ContinueOnError)
	shown.SortFlags = cmd.Flags().SortFlags
	cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		_, isConnection := flag.Annotations[connectionAnnotation]
		if isConnection == connection && flag.Name != "help" && (isFull(cmd) || !isSeldom(flag)) {
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
