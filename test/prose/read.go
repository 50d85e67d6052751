package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

var (
	codeSpan = regexp.MustCompile("`[^`]*`")
	link     = regexp.MustCompile(`\[([^\]]*)\](\([^)]*\))?`)
	listItem = regexp.MustCompile(`^\s*(- |\* |[0-9]+\. )`)
)

// documents reads all Markdown of the repository. Each chapter and each document is a source.
func documents() (all []source, err error) {
	err = walk(".md", func(path string) error {
		content, err := os.ReadFile(path)
		all = append(all, source{path, prose(path, 1, string(content), true), longLines(path, string(content))})
		return err
	})
	return all, err
}

// walk calls do for each file with an extension, except test data and files ignored by Git.
func walk(extension string, do func(path string) error) error {
	listed, err := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "*"+extension).Output()
	if err != nil {
		return fmt.Errorf("git ls-files: %w", err)
	}
	for path := range strings.Lines(string(listed)) {
		path = strings.TrimSpace(path)
		if _, err := os.Lstat(path); strings.Contains(path, "testdata/") || err != nil {
			continue
		}
		if err := do(path); err != nil {
			return err
		}
	}
	return nil
}

// longLines returns the lines beyond the limit, except tables, pictures and code.
func longLines(path, content string) (long []place) {
	fenced := false
	for i, line := range strings.Split(content, "\n") {
		fenced = fenced != strings.HasPrefix(line, "```")
		canBreak := !fenced && !strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "![") && !strings.HasPrefix(line, "    ")
		if canBreak && utf8.RuneCountInString(line) > mostColumns {
			long = append(long, place{path, i + 1})
		}
	}
	return long
}

// prose splits a text into paragraphs and items, without code, tables and headings. first is the number of
// the first line; 0: none.
func prose(file string, first int, text string, markdown bool) (paragraphs []paragraph) {
	var lines []string
	begin := 0
	end := func() {
		if len(lines) > 0 {
			at := place{file, 0}
			if first > 0 {
				at.line = first + begin
			}
			joined := strings.Join(lines, "\n")
			joined = codeSpan.ReplaceAllStringFunc(joined, func(code string) string { return "X" + strings.Repeat("\n", strings.Count(code, "\n")) })
			paragraphs = append(paragraphs, paragraph{at, link.ReplaceAllString(joined, "$1")})
		}
		lines = nil
	}
	fenced := false
	for i, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
			end()
			continue
		}
		isCode := fenced || len(lines) == 0 && (strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t") || !markdown && strings.HasPrefix(line, "  "))
		isOther := markdown && (strings.HasPrefix(line, "#") || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "<") || strings.HasPrefix(line, "!["))
		switch {
		case isCode || isOther || strings.TrimSpace(line) == "":
			end()
			continue
		case listItem.MatchString(line):
			end()
			line = listItem.ReplaceAllString(line, "")
		}
		if len(lines) == 0 {
			begin = i
		}
		lines = append(lines, line)
	}
	end()
	return paragraphs
}

// help reads the man pages of all commands: they contain the help and the flags. All help is one source.
func help() ([]source, error) {
	dir, err := os.MkdirTemp("", "prose")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if out, err := exec.Command("go", "run", "./cmd/lockfs", "docs", "man", dir).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("man pages: %w: %s", err, out)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "man1", "*"))
	if err != nil {
		return nil, err
	}
	all := source{name: "help"}
	known := make(map[string]bool) // commands share flags and paragraphs
	for _, path := range pages {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		name := "help of " + strings.ReplaceAll(strings.TrimSuffix(filepath.Base(path), ".1"), "-", " ")
		for _, p := range prose(name, 0, unroff(string(content)), false) {
			if !known[p.text] {
				all.paragraphs = append(all.paragraphs, p)
			}
			known[p.text] = true
		}
	}
	return []source{all}, nil
}

var unescape = strings.NewReplacer(`\e`, `\`, `\-`, "-", `\(aq`, "'", `\(ga`, "`", `\(ha`, "^", `\(ti`, "~", `\(dq`, `"`, `\&`, "", `\fB`, "", `\fI`, "", `\fR`, "")

// unroff returns the paragraphs of a man page written by lockfs.
func unroff(page string) string {
	var b strings.Builder
	code := false
	for line := range strings.Lines(page) {
		switch {
		case strings.HasPrefix(line, ".nf"):
			code = true
		case strings.HasPrefix(line, ".fi"):
			code = false
		case strings.HasPrefix(line, ".SH SEE ALSO"), strings.HasPrefix(line, `.SH "SEE ALSO"`):
			return b.String()
		case strings.HasPrefix(line, "."):
			b.WriteString("\n")
		case !code:
			b.WriteString(unescape.Replace(line))
		}
	}
	return b.String()
}

// packages reads the doc comments of each package, without tests and generated code.
func packages() ([]source, error) {
	byFolder := make(map[string]*source)
	err := walk(".go", func(path string) error {
		if strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".pb.go") || strings.Contains(path, "/replaced/") {
			return nil
		}
		folder := "./" + filepath.ToSlash(filepath.Dir(path))
		if byFolder[folder] == nil {
			byFolder[folder] = &source{name: folder}
		}
		return byFolder[folder].addComments(path)
	})
	var all []source
	for _, s := range byFolder {
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b source) int { return strings.Compare(a.name, b.name) })
	return all, err
}

func (s *source) addComments(path string) error {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.ParseComments)
	if err != nil {
		return err
	}
	if ast.IsGenerated(file) {
		return nil
	}
	var groups []*ast.CommentGroup
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.File:
			groups = append(groups, n.Doc)
		case *ast.GenDecl:
			groups = append(groups, n.Doc)
		case *ast.FuncDecl:
			groups = append(groups, n.Doc)
			return false
		case *ast.TypeSpec:
			groups = append(groups, n.Doc)
		case *ast.ValueSpec:
			groups = append(groups, n.Doc)
		case *ast.Field:
			groups = append(groups, n.Doc, n.Comment)
		}
		return true
	})
	for _, group := range groups {
		if group == nil {
			continue
		}
		var lines []string
		for _, comment := range group.List {
			line := strings.TrimPrefix(strings.TrimPrefix(comment.Text, "//"), " ")
			if strings.HasPrefix(comment.Text, "//go:") || strings.HasPrefix(comment.Text, "//nolint") {
				line = ""
			}
			lines = append(lines, line)
			at := files.Position(comment.Pos())
			if at.Column == 1 && utf8.RuneCountInString(comment.Text) > mostColumns && !strings.HasPrefix(line, "\t") {
				s.long = append(s.long, place{path, at.Line})
			}
		}
		s.paragraphs = append(s.paragraphs, prose(path, files.Position(group.Pos()).Line, strings.Join(lines, "\n"), true)...)
	}
	return nil
}
