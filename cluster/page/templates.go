package page

import (
	"embed"
	"html/template"
	"math"
	"strings"
	"time"
)

//go:embed templates static openapi.json
var files embed.FS

func parseTemplates() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"when":    func(at moment) timed { return timed{at, 0} },
		"ago":     func(seconds float64) string { return span(time.Duration(seconds * float64(time.Second))) },
		"fine":    func(seconds float64) string { return fineSigned(seconds) },
		"event":   func(name string) string { return strings.ReplaceAll(name, "_", " ") },
		"path":    escapePath,
		"mid":     func(width, part int) int { return width / part },
		"add":     func(a, b int) int { return a + b },
		"version": func(v string) string { v, _, _ = strings.Cut(v, " "); return v },
	}).ParseFS(files, "templates/*.html"))
}

func fineSigned(seconds float64) string {
	if seconds < 0 {
		return "−" + fine(time.Duration(math.Abs(seconds)*float64(time.Second)))
	}
	return fine(time.Duration(seconds * float64(time.Second)))
}

// timed is a time displayed as its distance from now.
type timed struct {
	At  moment
	Now moment
}

// Distance returns the distance at the time of the page; the script updates it.
func (t timed) Distance() string {
	if t.Now == 0 {
		t.Now = moment(time.Now().UnixNano())
	}
	return t.At.Distance(t.Now)
}
