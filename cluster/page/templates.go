package page

import (
	"embed"
	"fmt"
	"html/template"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

//go:embed templates static openapi.json
var files embed.FS

// parseTemplates expects the cluster time for ages.
func parseTemplates(names *users, now func() moment) *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"since":   func(at moment) string { return span(time.Duration(now() - at)) },
		"until":   func(at moment) string { return at.Distance(now()) },
		"isPast":  func(at moment) bool { return at <= now() },
		"ago":     func(seconds float64) string { return span(time.Duration(seconds * float64(time.Second))) },
		"fine":    func(seconds float64) string { return fineSigned(seconds) },
		"event":   func(name string) string { return strings.ReplaceAll(name, "_", " ") },
		"user":    names.name,
		"seconds": wholeSeconds,
		"number":  thousands,
		"split":   strings.Split,
		"odd":     func(i int) bool { return i%2 == 1 },
		"path":    escapePath,
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

var fraction = regexp.MustCompile(`(T\d\d:\d\d:\d\d)\.\d+Z`)

// wholeSeconds cuts the fractions of the times in a text, which are there for programs.
func wholeSeconds(text string) string { return fraction.ReplaceAllString(text, "${1}Z") }

// thousands returns a number with its thousands separated.
func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
