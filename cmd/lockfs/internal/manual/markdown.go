package manual

import "strings"

type kind int

const (
	paragraph kind = iota
	heading
	item
	code
)

// block is a part of a text that begins on a line of its own.
type block struct {
	kind  kind
	level int      // of a heading: 1 is the title
	lines []string // without what marks the block
}

// indented is how far a line of code begins behind the text.
type indented int

const (
	inChapters indented = 4
	inCommands indented = 2 // as the help of commands is written
)

// parse splits a text into blocks.
func parse(text string, codeFrom indented) []block {
	var blocks []block
	var now *block
	add := func(k kind, level int, line string) {
		blocks = append(blocks, block{k, level, []string{line}})
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
				now = nil // code goes on behind lines without anything
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
		case codeFrom == inChapters && strings.HasPrefix(line, "- "):
			add(item, 0, line[2:])
		case inItem:
			now.lines = append(now.lines, line[2:])
		case now != nil && now.kind == paragraph:
			now.lines = append(now.lines, line)
		default:
			add(paragraph, 0, line)
		}
		gap = 0
	}
	return blocks
}

// span is a part of a line that is set in one way.
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
