// Package manual contains the chapters of the manual, as Markdown in the program, and the command that shows
// them (lockfs help CHAPTER). [DocsCommand] makes man pages of the chapters and of the commands.
//
// Each fact has one place. A long chapter is a list of pages (lockfs help CHAPTER PAGE). Chapters use little
// Markdown, so that the source is readable: headings, paragraphs, items ("-") and numbered steps ("1.") of
// one level, code indented by four spaces or more, and within a line `code` and **bold**. Pictures and tables
// are code.
package manual

import (
	"embed"
	"path"
	"slices"
	"strings"
)

//go:embed chapters/*.md chapters/recipes/*.md
var sources embed.FS

// names lists the chapters by the order of a reader's questions: use, set up, operate, look up.
var names = []string{
	"locks", "protocols", "recipes", "rules", "files", "failures", "setup", "packages", "containers", "security", "members", "mounts", "upgrade",
	"backup", "page", "metrics", "audit", "limits",
}

// pages lists the pages of the chapter recipes, in the order of its list.
var pages = []string{
	"recipes cron", "recipes deploy", "recipes runners", "recipes leader", "recipes agents", "recipes systemd", "recipes ansible",
	"recipes repositories", "recipes postgresql", "recipes terraform", "recipes caches", "recipes sqlite", "recipes proper-lockfile", "recipes filelock",
	"recipes from",
}

// Chapter is one chapter of the manual, or a page of one.
type Chapter struct {
	Name    string // one word; for a page the chapter's word and its own
	Summary string // one line
	Source  string // Markdown
}

// Chapters returns all chapters in order, and then all pages.
func Chapters() []Chapter {
	var chapters []Chapter
	for _, name := range slices.Concat(names, pages) {
		source, err := sources.ReadFile(path.Join("chapters", strings.ReplaceAll(name, " ", "/")+".md"))
		if err != nil {
			panic(err) // the file is embedded
		}
		title, _, _ := strings.Cut(string(source), "\n")
		_, summary, _ := strings.Cut(title, ": ")
		chapters = append(chapters, Chapter{Name: name, Summary: summary, Source: string(source)})
	}
	return chapters
}

// Find returns the chapter or page with a name, and reports whether it exists.
func Find(name string) (Chapter, bool) {
	chapters := Chapters()
	i := slices.IndexFunc(chapters, func(c Chapter) bool { return c.Name == name })
	if i < 0 {
		return Chapter{}, false
	}
	return chapters[i], true
}
