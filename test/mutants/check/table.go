package main

import (
	"fmt"
	"strings"
	"time"
)

// sighting records the test with the finding.
type sighting struct {
	mistake
	what   string
	folder string
	test   string
	after  time.Duration
}

// table returns Markdown.
func table(seen []sighting) string {
	var b strings.Builder
	b.WriteString("| mistake | what is wrong | kind | caught by | after |\n|---|---|---|---|---|\n")
	for _, s := range seen {
		fmt.Fprintf(&b, "| %s | %s | %s | `%s` in %s | %.1f s |\n", s.name, s.what, s.kind, s.test, s.folder, s.after.Seconds())
	}
	return b.String()
}
