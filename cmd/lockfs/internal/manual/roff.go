package manual

import (
	"fmt"
	"strings"
)

// page is a man page in the language of groff_man(7). It bears no date: the same program makes the same
// bytes.
type page struct{ strings.Builder }

func newPage(name, section, version, summary string) *page {
	p := &page{}
	p.macro("TH", strings.ToUpper(name), section, "", "lockfs "+version, "lockfs")
	p.line(".nh") // no hyphenation: readers copy words
	p.heading("Name")
	p.line(escaped(name) + ` \- ` + escaped(summary))
	return p
}

func (p *page) line(text string) { p.WriteString(text + "\n") }

func (p *page) macro(name string, arguments ...string) {
	p.WriteString("." + name)
	for _, argument := range arguments {
		fmt.Fprintf(p, ` "%s"`, strings.ReplaceAll(escaped(argument), `"`, `\(dq`))
	}
	p.WriteString("\n")
}

func (p *page) heading(text string) { p.macro("SH", strings.ToUpper(text)) }

// blocks writes parsed blocks. With marked, text between marks is bold.
func (p *page) blocks(blocks []block, marked bool) {
	for _, b := range blocks {
		switch b.kind {
		case heading:
			p.title(b)
		case paragraph:
			p.line(".PP")
			p.text(b.lines, marked)
		case item:
			if b.mark == "-" {
				p.line(`.IP \(bu 2`)
			} else {
				p.line(".IP " + b.mark + " 4")
			}
			p.text(b.lines, marked)
		case code:
			p.code(b.lines)
		}
	}
}

// title writes a heading, except the title of the whole text, which is in the name.
func (p *page) title(b block) {
	text := plain(strings.Join(b.lines, " "))
	switch b.level {
	case 1:
	case 2:
		p.heading(text)
	default:
		p.macro("SS", text)
	}
}

func (p *page) code(lines []string) {
	p.line(".PP\n.RS 4\n.nf")
	for _, line := range lines {
		p.line(protected(escaped(line)))
	}
	p.line(".fi\n.RE")
}

func (p *page) text(lines []string, marked bool) {
	text := strings.Join(lines, "\n")
	if !marked {
		text = escaped(text)
	} else {
		var b strings.Builder
		for _, s := range spans(text) {
			if s.bold {
				b.WriteString(`\fB` + escaped(s.text) + `\fR`)
			} else {
				b.WriteString(escaped(s.text))
			}
		}
		text = b.String()
	}
	for line := range strings.SplitSeq(text, "\n") {
		p.line(protected(line))
	}
}

// escaped returns a text without special characters: a reader can copy it from the page.
var escaped = strings.NewReplacer(
	`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`,
).Replace

// protected returns a line that groff does not take for a request.
func protected(line string) string {
	if strings.HasPrefix(line, ".") {
		return `\&` + line
	}
	return line
}
