package manual

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// DocsCommand prints documents for packages of lockfs, Kubernetes, Prometheus and Grafana.
func DocsCommand(version string) *cobra.Command {
	docs := &cobra.Command{Use: "docs", Short: "Write man pages, systemd units, manifests, alerts, a dashboard"}
	docs.AddCommand(&cobra.Command{
		Use:   "man DIR",
		Short: "Write the man pages to a directory",
		Long: `Write the man pages of all commands (section 1) and chapters (section 7) to a
directory, which is created if it is missing. The output is reproducible.`,
		Example: "  lockfs docs man /usr/local/share/man",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("usage: %s", cmd.UseLine())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return writePages(cmd.Root(), version, args[0])
		},
	})
	docs.AddCommand(monitoringCommands()...)
	docs.AddCommand(kubernetesCommand(version))
	return docs
}

// writePages writes DIR/man1/lockfs-COMMAND.1 and DIR/man7/lockfs-CHAPTER.7, as man looks for them.
func writePages(root *cobra.Command, version, dir string) error {
	pages := map[string]string{}
	for _, chapter := range Chapters() {
		pages["man7/"+pageName(root, chapter.Name)+".7"] = chapterPage(root, chapter, version)
	}
	eachCommand(root, func(cmd *cobra.Command) {
		pages["man1/"+commandPageName(cmd)+".1"] = commandPage(cmd, version)
	})
	for name, text := range pages {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// eachCommand calls do for a command and all visible commands below it.
func eachCommand(cmd *cobra.Command, do func(*cobra.Command)) {
	do(cmd)
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			eachCommand(sub, do)
		}
	}
}

func pageName(root *cobra.Command, name string) string {
	return root.Name() + "-" + strings.ReplaceAll(name, " ", "-")
}

func commandPageName(cmd *cobra.Command) string {
	return strings.ReplaceAll(cmd.CommandPath(), " ", "-")
}

func chapterPage(root *cobra.Command, chapter Chapter, version string) string {
	p := newPage(pageName(root, chapter.Name), "7", version, chapter.Summary)
	blocks := parse(chapter.Source, inChapters)
	if len(blocks) > 1 && blocks[1].kind != heading {
		p.heading("Description")
	}
	p.blocks(blocks, true)
	also := []string{root.Name() + "(1)"}
	for _, below := range pagesOf(chapter.Name) {
		also = append(also, pageName(root, chapter.Name+" "+below)+"(7)")
	}
	for _, other := range names {
		if other != chapter.Name {
			also = append(also, pageName(root, other)+"(7)")
		}
	}
	p.seeAlso(also)
	return p.String()
}

func commandPage(cmd *cobra.Command, version string) string {
	p := newPage(commandPageName(cmd), "1", version, cmd.Short)
	p.heading("Synopsis")
	for _, usage := range usages(cmd) {
		p.line(".B " + escaped(usage) + "\n.br")
	}
	p.heading("Description")
	description := cmd.Long
	if description == "" {
		description = cmd.Short + "."
	}
	for _, b := range parse(description, inCommands) {
		if terms := termsOf(b); len(terms) > 1 {
			p.terms(terms)
		} else {
			p.blocks([]block{b}, false)
		}
	}
	p.options(cmd.NonInheritedFlags())
	if cmd.Example != "" {
		p.heading("Examples")
		p.blocks(parse(cmd.Example, inCommands), false)
	}
	p.seeAlso(commandsAbout(cmd))
	return p.String()
}

// term is a word in the help of a command, with its description.
type term struct {
	word string
	said []string
}

// termsOf parses an indented list of terms; its lines are wider than a man page. It returns none if a line
// has no gap and does not continue the line before.
func termsOf(b block) []term {
	if b.kind != code {
		return nil
	}
	var terms []term
	for _, line := range b.lines {
		word, said, gap := strings.Cut(line, "  ")
		switch {
		case !gap:
			return nil
		case word != "":
			terms = append(terms, term{word, []string{strings.TrimSpace(said)}})
		case len(terms) > 0:
			last := &terms[len(terms)-1]
			last.said = append(last.said, strings.TrimSpace(said))
		default:
			return nil
		}
	}
	return terms
}

func (p *page) terms(terms []term) {
	for _, t := range terms {
		p.line(".TP\n\\fB" + escaped(t.word) + "\\fR")
		p.text(t.said, false)
	}
}

// usages returns the forms of a command, which may act itself and have commands below it.
func usages(cmd *cobra.Command) []string {
	if !cmd.HasSubCommands() {
		return []string{cmd.UseLine()}
	}
	below := cmd.CommandPath() + " COMMAND"
	if strings.Contains(cmd.Use, " ") {
		return []string{cmd.UseLine(), below}
	}
	return []string{below}
}

func (p *page) options(flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	p.heading("Options")
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(flag)
		p.line(".TP")
		name := `\fB` + escaped("--"+flag.Name) + `\fR`
		if flag.Shorthand != "" {
			name = `\fB` + escaped("-"+flag.Shorthand) + `\fR, ` + name
		}
		if value != "" {
			name += ` \fI` + escaped(value) + `\fR`
		}
		p.line(name)
		if def := defaultOf(flag); def != "" {
			usage += fmt.Sprintf(" (default %s)", def)
		}
		p.text([]string{usage}, false)
	})
}

// defaultOf returns the default of a flag, or nothing. It is the same on every machine.
func defaultOf(flag *pflag.Flag) string {
	switch flag.DefValue {
	case "", "0", "0s", "false", "[]":
		return ""
	}
	if home, err := os.UserHomeDir(); err == nil {
		return strings.ReplaceAll(flag.DefValue, home, "$HOME")
	}
	return flag.DefValue
}

// commandsAbout returns the pages of the command above, of those below, and of the chapters.
func commandsAbout(cmd *cobra.Command) []string {
	var also []string
	if cmd.HasParent() {
		also = append(also, commandPageName(cmd.Parent())+"(1)")
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			also = append(also, commandPageName(sub)+"(1)")
		}
	}
	for _, name := range names {
		also = append(also, pageName(cmd.Root(), name)+"(7)")
	}
	return also
}

func (p *page) seeAlso(pages []string) {
	p.heading("See also")
	p.text([]string{strings.Join(pages, ",\n")}, false)
}
