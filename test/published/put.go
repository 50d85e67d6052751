// Package published puts what a command has made into a document, between the comments that are there for it.
package published

import (
	"fmt"
	"os"
	"strings"
)

// Put puts a text into a file in the place of what the same command has put there before: between
//
//	<!-- made by COMMAND: -->
//	<!-- end of what is made by COMMAND -->
func Put(path, command, text string) error {
	begin := fmt.Sprintf("<!-- made by %s: -->\n", command)
	end := fmt.Sprintf("<!-- end of what is made by %s -->\n", command)
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(content), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return fmt.Errorf("%s has no place for it: %q, and %q after it", path, begin, end)
	}
	return os.WriteFile(path, []byte(before+begin+"\n"+text+"\n"+end+after), 0o644)
}
