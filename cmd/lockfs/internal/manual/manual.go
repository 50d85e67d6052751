// Package manual is what lockfs says of itself at length: chapters in Markdown, which are part of the program, and the
// command that shows them (lockfs help CHAPTER). [DocsCommand] makes man pages of them, and of the commands.
//
// A chapter is the one place of what it tells; one that is long is a list of pages (lockfs help CHAPTER PAGE). It is written in as little Markdown as will do, so that it can be read as it
// is: headings, paragraphs, items of one level ("- "), code indented by four spaces, and in a line `code` and **bold**.
package manual

import (
	"embed"
	"path"
	"slices"
	"strings"
)

//go:embed chapters/*.md chapters/recipes/*.md
var sources embed.FS

// names are the chapters in the order in which they are listed.
var names = []string{
	"locks", "rules", "files", "protocols", "recipes", "operation", "page", "packages", "containers", "metrics", "security", "backup",
	"upgrade", "audit", "limits",
}

// pages are those of the chapter recipes, in the order in which it lists them.
var pages = []string{
	"recipes cron", "recipes deploy", "recipes runners", "recipes leader", "recipes agents", "recipes systemd", "recipes ansible",
	"recipes repositories", "recipes postgresql", "recipes terraform", "recipes caches", "recipes sqlite", "recipes proper-lockfile", "recipes filelock",
	"recipes from",
}

// Chapter is one chapter of the manual, or a page of one.
type Chapter struct {
	Name    string // one word; of a page that of its chapter and another
	Summary string // one line, of what it is about
	Source  string // Markdown
}

// Chapters are all of them, in the order in which they are listed, and then all pages.
func Chapters() []Chapter {
	var chapters []Chapter
	for _, name := range slices.Concat(names, pages) {
		source, err := sources.ReadFile(path.Join("chapters", strings.ReplaceAll(name, " ", "/")+".md"))
		if err != nil {
			panic(err) // it is embedded, or the program cannot be built right
		}
		title, _, _ := strings.Cut(string(source), "\n")
		_, summary, _ := strings.Cut(title, ": ")
		chapters = append(chapters, Chapter{Name: name, Summary: summary, Source: string(source)})
	}
	return chapters
}

// Find answers the chapter or page of a name, and whether there is one.
func Find(name string) (Chapter, bool) {
	chapters := Chapters()
	i := slices.IndexFunc(chapters, func(c Chapter) bool { return c.Name == name })
	if i < 0 {
		return Chapter{}, false
	}
	return chapters[i], true
}
