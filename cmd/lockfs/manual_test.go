package main

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/cmd/lockfs/internal/cli/clitest"
	"lockfs/cmd/lockfs/internal/manual"
)

// TestManPages renders all of them, and compares two renderings of the program: they bear no date.
func TestManPages(t *testing.T) {
	program := clitest.ProgramNamed(t, "lockfs")
	var made [2]string
	for i := range made {
		made[i] = t.TempDir()
		done := clitest.Execute(t, nil, program, "docs", "man", made[i])
		require.Zero(t, done.Code, done.Stderr)
	}
	pages, err := filepath.Glob(made[0] + "/man?/*")
	require.NoError(t, err)
	require.Contains(t, pages, made[0]+"/man1/lockfs-tower-run.1")
	require.Len(t, manual.Chapters(), len(match(t, made[0]+"/man7/lockfs-*.7")))
	for _, page := range pages {
		first, err := os.ReadFile(page)
		require.NoError(t, err)
		second, err := os.ReadFile(strings.Replace(page, made[0], made[1], 1))
		require.NoError(t, err)
		require.Equal(t, string(first), string(second))

		groff := exec.Command("groff", "-man", "-ww", "-Tutf8", "-P-cbou", page)
		var warnings bytes.Buffer
		groff.Stderr = &warnings
		rendered, err := groff.Output()
		require.NoError(t, err, "%s: %s", page, &warnings)
		require.Empty(t, warnings.String(), page)
		require.Contains(t, string(rendered), "\nSEE ALSO\n", page)
	}
}

func match(t testing.TB, pattern string) []string {
	found, err := filepath.Glob(pattern)
	require.NoError(t, err)
	return found
}

// Calls of lockfs in documents: a line of code, which may go on in the next, or code within a line.
var (
	codeLines = regexp.MustCompile(`(?m)^ {4,}(lockfs (?:[^\n]*\\\n)*[^\n]*)$`)
	codeSpan  = regexp.MustCompile("`(lockfs [^`]*)`")
	callsEnd  = regexp.MustCompile(`[|;&#>]| -- `)
)

// TestDocumentsNameWhatThereIs: the commands, flags and chapters that README and manual tell of.
func TestDocumentsNameWhatThereIs(t *testing.T) {
	texts := map[string]string{}
	for _, file := range []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"} {
		content, err := os.ReadFile(filepath.Join("..", "..", file))
		require.NoError(t, err)
		texts[file] = string(content)
	}
	for _, chapter := range manual.Chapters() {
		texts[chapter.Name] = chapter.Source
	}
	calls := 0
	for name, text := range texts {
		for _, found := range append(codeLines.FindAllStringSubmatch(text, -1), codeSpan.FindAllStringSubmatch(text, -1)...) {
			calls++
			checkCall(t, name, callsEnd.Split(found[1], 2)[0])
		}
	}
	require.Greater(t, calls, 50)
}

// TestTheProgramNamesChaptersThatThereAre checks each `lockfs help WORD` in the sources.
func TestTheProgramNamesChaptersThatThereAre(t *testing.T) {
	named := regexp.MustCompile(`lockfs help ([a-z]+)`)
	count := 0
	for _, folder := range []string{"cmd", "cluster", "fusefs", "raftstore", "formats"} {
		require.NoError(t, filepath.WalkDir(filepath.Join("..", "..", folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			for _, found := range named.FindAllSubmatch(source, -1) {
				count++
				word := string(found[1])
				_, isChapter := manual.Find(word)
				cmd, _, unknown := rootCommand().Find([]string{word})
				require.True(t, isChapter || unknown == nil && cmd.HasParent(), "%s: lockfs help %s", path, word)
			}
			return err
		}))
	}
	require.Greater(t, count, 50)
}

// TestDocumentsLinkToFiles checks that each relative link and picture of a document leads to a file.
func TestDocumentsLinkToFiles(t *testing.T) {
	root := filepath.Join("..", "..")
	link := regexp.MustCompile(`\]\(([^):#]+)\)`)
	links := 0
	for _, file := range []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "TESTING.md", "CHANGELOG.md"} {
		content, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		for _, found := range link.FindAllStringSubmatch(string(content), -1) {
			links++
			require.FileExists(t, filepath.Join(root, found[1]), file)
		}
	}
	require.Greater(t, links, 20)
}

// TestSecurityNamesTestsThatAreThere: each claim about an attacker names the tests that play the attacker.
func TestSecurityNamesTestsThatAreThere(t *testing.T) {
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "SECURITY.md"))
	require.NoError(t, err)
	wanted := make(map[string]bool)
	for _, found := range regexp.MustCompile("`(Test[A-Z][A-Za-z0-9]*)`").FindAllStringSubmatch(string(page), -1) {
		wanted[found[1]] = true
	}
	require.Greater(t, len(wanted), 15)
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	require.NoError(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, found := range function.FindAllSubmatch(source, -1) {
			delete(wanted, string(found[1]))
		}
		return err
	}))
	require.Empty(t, wanted)
}

// checkCall checks that there is what is called, and that it has the flags.
func checkCall(t *testing.T, where, call string) {
	words := strings.Fields(strings.ReplaceAll(call, "\\\n", " "))[1:]
	cmd := rootCommand()
	cmd.InitDefaultCompletionCmd()
	cmd.InitDefaultHelpCmd()
	for _, word := range words {
		name := strings.Trim(word, "[](),.'")
		if flag, is := strings.CutPrefix(name, "--"); is {
			flag, _, _ = strings.Cut(flag, "=")
			require.True(t, flag == "help" || cmd.Flags().Lookup(flag) != nil, "%s: %s: no flag --%s", where, call, flag)
			continue
		}
		if cmd.HasSubCommands() {
			found, _, err := cmd.Find([]string{name})
			require.NoError(t, err, "%s: %s", where, call)
			takesMore := strings.Contains(cmd.Use, " ") || name == ""
			require.True(t, found != cmd || takesMore, "%s: %s: no such command", where, call)
			cmd = found
		}
	}
	if cmd.Name() == "help" && len(words) > 1 && words[1] != "CHAPTER" && !slices.Contains(words, "PAGE") {
		_, is := manual.Find(strings.Join(words[1:], " "))
		require.True(t, is, "%s: %s: no such chapter", where, call)
	}
}

// TestManualHasTheTableOfEndings: codes and words of the one table, row by row.
func TestManualHasTheTableOfEndings(t *testing.T) {
	chapter, _ := manual.Find("protocols")
	for _, e := range cli.Endings {
		code := strconv.Itoa(e.Code)
		if e.Code == cli.ExitSignal {
			code += "+N"
		}
		require.Contains(t, chapter.Source, code+" `"+e.Outcome+"`")
	}
}
