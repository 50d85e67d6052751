package recipes

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A page of the chapter. Its blocks are files, or what is typed; those below "Before" are neither.
type page struct {
	name  string
	files map[string]string // by path
	typed []string
	done  map[string]bool // texts of blocks that were used
}

// fileName is how a paragraph ends after which a file comes.
var fileName = regexp.MustCompile("`([^`]+)`:$")

// readPage takes the Markdown of a page apart, in which blocks are lines that are indented by four spaces.
func readPage(name, source string) *page {
	p := &page{name: name, files: map[string]string{}, done: map[string]bool{}}
	before, block := "", "" // the last line of text, and the code after it
	add := func() {
		block = strings.TrimRight(block, "\n") + "\n"
		if file := fileName.FindStringSubmatch(before); file != nil {
			p.files[file[1]] = block
		} else if before != "Before:" && block != "\n" {
			p.typed = append(p.typed, block)
		}
		block = ""
	}
	for line := range strings.Lines(source) {
		code, is := strings.CutPrefix(line, "    ")
		switch {
		case is, line == "\n" && block != "":
			block += code
		case line != "\n":
			if block != "" {
				add()
			}
			before = strings.TrimSpace(line)
		}
	}
	if block != "" {
		add()
	}
	return p
}

// block is what is to be typed that has some words in it.
func (p *page) block(t testing.TB, words string) string {
	t.Helper()
	var found []string
	for _, block := range p.typed {
		if strings.Contains(block, words) {
			found = append(found, block)
		}
	}
	require.Len(t, found, 1, "blocks of %s with %q", p.name, words)
	p.done[found[0]] = true
	return found[0]
}

// file is the content of one.
func (p *page) file(t testing.TB, path string) string {
	t.Helper()
	require.Contains(t, p.files, path)
	p.done[p.files[path]] = true
	return p.files[path]
}

// requireAllDone requires that nothing is printed that was not used.
func (p *page) requireAllDone(t testing.TB) {
	t.Helper()
	for _, block := range p.typed {
		require.True(t, p.done[block], "nothing does this:\n%s", block)
	}
	for path, block := range p.files {
		require.True(t, p.done[block], "nothing uses %s", path)
	}
}

func TestPagesAreTakenApart(t *testing.T) {
	p := readPage("x", "# recipes x: y\n\nIn `/etc/a`:\n\n    one\n\n      two\n\nTyped:\n\n    three\n    four\n\nBefore:\n\n    five\n\nNow:\n\n    six\n")
	require.Equal(t, map[string]string{"/etc/a": "one\n\n  two\n"}, p.files)
	require.Equal(t, []string{"three\nfour\n", "six\n"}, p.typed)
}
