package manual

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

func TestEachChapterIsListed(t *testing.T) {
	for _, listed := range []struct {
		pattern string
		names   []string
	}{{"chapters/*.md", names}, {"chapters/*/*.md", pages}} {
		files, err := fs.Glob(sources, listed.pattern)
		require.NoError(t, err)
		require.Len(t, listed.names, len(files))
	}
	for _, chapter := range Chapters() {
		require.True(t, strings.HasPrefix(chapter.Source, "# "+chapter.Name+": "), chapter.Name)
		if of, page, is := strings.Cut(chapter.Name, " "); is {
			above, _ := Find(of)
			require.Contains(t, above.Source, "\n- `"+page+"`: "+chapter.Summary+"\n")
		} else {
			require.Contains(t, Listing(), chapter.Summary)
		}
		for i, line := range strings.Split(chapter.Source, "\n") {
			require.LessOrEqual(t, len(line), 80, "%s, line %d", chapter.Name, i+1)
			require.NotContains(t, line, "|---", "%s: terminals and man have no such tables", chapter.Name)
		}
	}
}

// TestNothingIsLostInAChapter compares the words of the source and of the output for a terminal.
func TestNothingIsLostInAChapter(t *testing.T) {
	for _, chapter := range Chapters() {
		var out bytes.Buffer
		writePlain(&out, chapter)
		source := strings.NewReplacer("`", "", "**", "", "#", "").Replace(chapter.Source)
		shown := strings.NewReplacer("`", "", "**", "", "#", "").Replace(out.String())
		require.Equal(t, strings.Fields(strings.ToLower(source)), strings.Fields(strings.ToLower(shown)), chapter.Name)
	}
}

func TestHelp(t *testing.T) {
	help := func(terminal bool, args ...string) (string, error) {
		root := program()
		root.SetHelpCommand(HelpCommand(func(io.Writer) bool { return terminal }, (*cobra.Command).Help))
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetArgs(append([]string{"help"}, args...))
		err := root.Execute()
		return out.String(), err
	}
	locks, _ := Find("locks")
	out, err := help(false, "locks")
	require.NoError(t, err)
	require.Equal(t, locks.Source, out)

	out, err = help(true, "locks")
	require.NoError(t, err)
	require.Contains(t, out, "\nWHY YOU CANNOT REMOVE IT\n")
	require.Contains(t, out, "For the command of that name: lockfs locks --help")
	out, err = help(true, "limits")
	require.NoError(t, err)
	require.NotContains(t, out, "command of that name")

	cron, _ := Find("recipes cron")
	out, err = help(false, "recipes", "cron")
	require.NoError(t, err)
	require.Equal(t, cron.Source, out)
	_, err = help(false, "recipes", "nosuch")
	require.ErrorContains(t, err, `there is no page "nosuch"; see `+"`lockfs help recipes`, which has cron, deploy, runners,")

	out, err = help(false, "tower", "run")
	require.NoError(t, err)
	require.Contains(t, out, "lockfs tower run NAME")
	out, err = help(false)
	require.NoError(t, err)
	require.Contains(t, out, "Chapters of the manual")

	for _, wrong := range [][]string{{"nosuch"}, {"tower", "nosuch"}, {"rules", "nosuch"}} {
		_, err = help(false, wrong...)
		require.ErrorContains(t, err, "there is no command and no chapter")
		require.ErrorContains(t, err,
			"locks, protocols, recipes, rules, files, failures, setup, packages, containers, security, members, mounts, upgrade, backup, page, metrics, audit, limits")
	}
}

// program has what makes man pages difficult.
func program() *cobra.Command {
	nothing := func(*cobra.Command, []string) {}
	root := &cobra.Command{Use: "lockfs", Short: "A directory", SilenceErrors: true, SilenceUsage: true}
	tower := &cobra.Command{Use: "tower", Short: "Locks of tower-fleet"}
	run := &cobra.Command{
		Use:   "run NAME -- COMMAND",
		Short: "Run 'it'",
		Long: `.TH is no request here, nor is 'this, and C:\new is a path.

  75  somebody
      has it
  76  still so

and in

  one  line  only`,
		Example: "  lockfs tower run 'a-${params.*}'  # `b`",
		Run:     nothing,
	}
	run.Flags().String("dir", filepath.Join(os.Getenv("HOME"), "locks"), "a `DIR`")
	tower.AddCommand(run)
	root.AddCommand(tower, &cobra.Command{Use: "locks", Short: "List locks", Run: nothing},
		&cobra.Command{Use: "secret", Short: "Nothing for people", Hidden: true, Run: nothing})
	return root
}

func TestPagesOfCommands(t *testing.T) {
	t.Setenv("HOME", "/home/somebody")
	dir := t.TempDir()
	require.NoError(t, writePages(program(), "v1", dir))
	content, err := os.ReadFile(filepath.Join(dir, "man1", "lockfs-tower-run.1"))
	require.NoError(t, err)
	page := string(content)
	for _, line := range []string{
		`.TH "LOCKFS\-TOWER\-RUN" "1" "" "lockfs v1" "lockfs"`,
		`lockfs\-tower\-run \- Run \(aqit\(aq`,
		`\&.TH is no request here, nor is \(aqthis, and C:\enew is a path.`,
		".TP\n\\fB75\\fR\nsomebody\nhas it\n.TP\n\\fB76\\fR\nstill so\n",
		".nf\none  line  only\n.fi",
		`lockfs tower run \(aqa\-${params.*}\(aq  # \(gab\(ga`,
		".TP\n\\fB\\-\\-dir\\fR \\fIDIR\\fR\na DIR (default $HOME/locks)",
		"lockfs\\-tower(1),\nlockfs\\-locks(7),\n",
	} {
		require.Contains(t, page, line)
	}
	require.NoFileExists(t, filepath.Join(dir, "man1", "lockfs-secret.1"))
	require.FileExists(t, filepath.Join(dir, "man7", "lockfs-locks.7"))
}

func TestSpans(t *testing.T) {
	for text, want := range map[string][]span{
		"":                {},
		"a":               {{"a", false}},
		"`a`":             {{"a", true}},
		"a `b **c**` d":   {{"a ", false}, {"b **c**", true}, {" d", false}},
		"**a** and **b**": {{"a", true}, {" and ", false}, {"b", true}},
		"`a\nb`":          {{"a\nb", true}},
		"2 * 3":           {{"2 *", false}, {" 3", false}},
		"a ` b":           {{"a `", false}, {" b", false}},
	} {
		require.ElementsMatch(t, want, spans(text), text)
	}
}
