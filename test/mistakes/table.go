package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// sighting is how a mistake was seen.
type sighting struct {
	mistake
	what   string
	folder string
	test   string
	after  time.Duration
}

// table is markdown.
func table(seen []sighting) string {
	var b strings.Builder
	b.WriteString("| mistake | what is wrong | kind | caught by | after |\n|---|---|---|---|---|\n")
	for _, s := range seen {
		fmt.Fprintf(&b, "| %s | %s | %s | `%s` in %s | %.1f s |\n", s.name, s.what, s.kind, s.test, s.folder, s.after.Seconds())
	}
	return b.String()
}

// What a file has before and after the table.
const (
	begin = "<!-- made by test/run mistakes: -->\n"
	end   = "<!-- end of what is made by test/run mistakes -->\n"
)

// writeTable puts a table in the place of the one that a file has.
func writeTable(path, table string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(content), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return fmt.Errorf("%s has no place for the table: %q, and %q after it", path, begin, end)
	}
	return os.WriteFile(path, []byte(before+begin+"\n"+table+"\n"+end+after), 0o644)
}
