// Package glob matches paths with the patterns of rules.
//
// A pattern without a slash matches the last element of a path in any directory. A pattern with a slash
// matches a whole path from the root, and a leading slash has no other meaning. In an element
//
//   - matches any run of characters, also none
//     ?      matches one character
//     [a-z]  matches one character of a class, [^a-z] one outside of it, as in path.Match
//     \x     matches x itself
//
// and ** as a whole element matches any number of elements, also none. A byte of invalid UTF-8 is a character
// of its own. Replicas decide by patterns, so their meaning must not change.
package glob

import (
	"fmt"
	"path"
	"strings"
	"unicode/utf8"
)

// MaxLength is the length of the longest pattern, in bytes.
const MaxLength = 4096

// Check returns the error in a pattern; empty: it is valid.
func Check(pattern string) string {
	switch {
	case pattern == "":
		return "the pattern is empty; write ** for every path"
	case len(pattern) > MaxLength:
		return fmt.Sprintf("the pattern has %d bytes; write at most %d", len(pattern), MaxLength)
	case strings.Contains(pattern, "\x00"):
		return "the pattern has a NUL byte; leave it out, no path has one"
	case strings.HasSuffix(pattern, "/"):
		return "the pattern ends with a slash; write /** at its end for all that is below a directory"
	}
	for element := range strings.SplitSeq(strings.TrimPrefix(pattern, "/"), "/") {
		if message := checkElement(element); message != "" {
			return message
		}
	}
	return ""
}

func checkElement(element string) string {
	switch element {
	case "":
		return "the pattern has two slashes in a row; write one"
	case ".", "..":
		return fmt.Sprintf("the pattern has the element %q; write the path from the root without it", element)
	}
	if _, err := path.Match(element, ""); err != nil {
		return fmt.Sprintf(`%.100q in the pattern is not valid; close every [ with ], and write \ before `+
			`each of * ? [ ] - \ that stands for itself`, element)
	}
	return ""
}

// Match reports whether a path below the root ("a/b.lock", no leading slash) matches a pattern. It takes at
// most as many steps as the product of their lengths.
func Match(pattern, path string) bool {
	if !strings.Contains(pattern, "/") {
		return matchElement(pattern, path[strings.LastIndexByte(path, '/')+1:])
	}
	return matchElements(strings.TrimPrefix(pattern, "/"), path)
}

// matchElements lets each ** take as few elements as possible. If the rest does not match, only the last **
// takes one more: more for an earlier one could not leave more choices.
func matchElements(pattern, path string) bool {
	var after, from string // the pattern behind the last **, and where in the path that was tried
	for path != "" {
		first, others, _ := strings.Cut(pattern, "/")
		element, below, _ := strings.Cut(path, "/")
		switch {
		case first == "**":
			pattern, after, from = others, others, path
		case pattern != "" && matchElement(first, element):
			pattern, path = others, below
		case from != "":
			_, from, _ = strings.Cut(from, "/")
			pattern, path = after, from
		default:
			return false
		}
	}
	for first := ""; pattern != ""; {
		if first, pattern, _ = strings.Cut(pattern, "/"); first != "**" {
			return false
		}
	}
	return true
}

// matchElement matches * and characters within an element. path.Match would let a * end amid a character, and
// so match "é" with "*[^é]".
func matchElement(pattern, name string) bool {
	var after, from string
	for name != "" {
		token, char := firstToken(pattern), firstChar(name)
		switch {
		case token == "*":
			pattern = pattern[1:]
			after, from = pattern, name
		case token != "" && matchChar(token, char):
			pattern, name = pattern[len(token):], name[len(char):]
		case from != "":
			from = from[len(firstChar(from)):]
			pattern, name = after, from
		default:
			return false
		}
	}
	return strings.Trim(pattern, "*") == ""
}

// firstToken returns the first token of a valid element: a * or a token for one character.
func firstToken(pattern string) string {
	switch {
	case strings.HasPrefix(pattern, `\`):
		return pattern[:1+len(firstChar(pattern[1:]))]
	case strings.HasPrefix(pattern, "["):
		return pattern[:classEnd(pattern)]
	}
	return firstChar(pattern)
}

func classEnd(pattern string) int {
	for i := 1; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			i++
		case ']':
			return i + 1
		}
	}
	return len(pattern)
}

func firstChar(s string) string {
	_, size := utf8.DecodeRuneInString(s)
	return s[:size]
}

func matchChar(token, char string) bool {
	switch token[0] {
	case '?':
		return true
	case '[':
		fits, err := path.Match(token, char)
		return fits && err == nil
	case '\\':
		return token[1:] == char
	}
	return token == char
}

// Below returns a string for comparing directories: below two directories with equal strings, a pattern
// matches the same names. The directory is a path like that of Match; empty: the root. It takes no more steps
// than Match.
func Below(pattern, dir string) string {
	if !strings.Contains(pattern, "/") {
		return "" // the directory of a name does not matter
	}
	elements := strings.Split(strings.TrimPrefix(pattern, "/"), "/")
	at := newPlaces(len(elements))
	at.add(elements, 0)
	for element := range strings.SplitSeq(dir, "/") {
		if dir == "" {
			break // the root
		}
		next := newPlaces(len(elements))
		for i, isAt := range at[:len(elements)] {
			switch {
			case isAt != here:
			case elements[i] == "**":
				next.add(elements, i)
			case matchElement(elements[i], element):
				next.add(elements, i+1)
			}
		}
		at = next
	}
	return string(at[:len(elements)]) // a complete match is of the directory itself, and of nothing below
}

// places are the possible numbers of pattern elements consumed by a path.
type places []byte

const here = 'x'

func newPlaces(elements int) places { return make(places, elements+1) }

// add adds a place, and the next ones if ** may match no element.
func (p places) add(elements []string, place int) {
	p[place] = here
	if place < len(elements) && elements[place] == "**" {
		p.add(elements, place+1)
	}
}
