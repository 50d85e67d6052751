package manual

import (
	"regexp"
	"strings"
)

type kind int

const (
	paragraph kind = iota
	heading
	item
	code
)

// block is a part of a text: a heading, a paragraph, an item or code.
type block struct {
	kind  kind
	level int      // of a heading: 1 is the title
	mark  string   // of an item: "-", or "1." and so on
	lines []string // without the mark
}

// indented is the indentation of code.
type indented int

const (
	inChapters indented = 4
	inCommands indented = 2 // in the help of commands
)

// itemMark matches the beginning of an item, or of a numbered step.
var itemMark = regexp.MustCompile(`^(-|[1-9][0-9]*\.) `)

// parse splits a text into blocks.
func parse(text string, codeFrom indented) []block {
	var blocks []block
	var now *block
	add := func(k kind, level int, line string) {
		blocks = append(blocks, block{kind: k, level: level, lines: []string{line}})
		now = &blocks[len(blocks)-1]
	}
	margin := strings.Repeat(" ", int(codeFrom))
	gap := 0
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \n")
		inItem := now != nil && now.kind == item && strings.HasPrefix(line, "  ")
		unindented, isCode := strings.CutPrefix(line, margin)
		switch {
		case line == "":
			gap++
			if now != nil && now.kind != code {
				now = nil // code continues after empty lines
			}
			continue
		case isCode && !inItem:
			if now == nil || now.kind != code {
				add(code, 0, unindented)
				break
			}
			for range gap {
				now.lines = append(now.lines, "")
			}
			now.lines = append(now.lines, unindented)
		case codeFrom == inChapters && strings.HasPrefix(line, "#"):
			marks := len(line) - len(strings.TrimLeft(line, "#"))
			add(heading, marks, strings.TrimSpace(line[marks:]))
			now = nil
		case codeFrom == inChapters && itemMark.MatchString(line):
			mark, text, _ := strings.Cut(line, " ")
			add(item, 0, text)
			now.mark = mark
		case inItem:
			now.lines = append(now.lines, strings.TrimLeft(line, " "))
		case now != nil && now.kind == paragraph:
			now.lines = append(now.lines, line)
		default:
			add(paragraph, 0, line)
		}
		gap = 0
	}
	return blocks
}

// span is a part of a line in one font.
type span struct {
	text string
	bold bool
}

// spans splits a text at `code` and **bold**, without the marks.
func spans(text string) []span {
	var all []span
	for text != "" {
		start := strings.IndexAny(text, "`*")
		mark := ""
		switch {
		case start < 0:
			return append(all, span{text: text})
		case text[start] == '`':
			mark = "`"
		case strings.HasPrefix(text[start:], "**"):
			mark = "**"
		}
		inside, rest, closed := strings.Cut(text[start+len(mark):], mark)
		if mark == "" || !closed {
			all = append(all, span{text: text[:start+1]})
			text = text[start+1:]
			continue
		}
		if start > 0 {
			all = append(all, span{text: text[:start]})
		}
		all = append(all, span{text: inside, bold: true})
		text = rest
	}
	return all
}
