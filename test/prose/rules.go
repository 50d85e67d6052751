package main

import (
	"fmt"
	"regexp"
	"strings"
)

// Limits of a text.
const (
	mostRiddles  = 3.0  // per 1,000 words
	mostThats    = 12.0 // per 1,000 words
	mostWords    = 30   // of a sentence
	mostColumns  = 110  // of a line
	freeRiddles  = 1    // in a short text
	freeThats    = 3    // in a short text
	shownOfFault = 60   // characters
)

var (
	word   = regexp.MustCompile(`[A-Za-z][A-Za-z'-]*`)
	riddle = regexp.MustCompile(`(?i)\b(who|what|whom|whose|whoever|whatever)\b`)
	that   = regexp.MustCompile(`(?i)\bthat\b`)

	// sentenceEnd includes colons and semicolons: a reader can pause there.
	sentenceEnd = regexp.MustCompile(`[.!?:;]["')\]*]*\s+`)

	// forbidden has pronouns without a noun, and metaphors in place of terms of raft and of file systems.
	forbidden = regexp.MustCompile(`(?i)\b(somebody|someone|nobody|anybody|everybody|he|him|his|` +
		`vigil|suffrage|expulsion|newcomers?|bequeath(?:ed|s)?|inheritance|farewell|foretell|foretold|foresee|foreseen|sequel|` +
		`wardens?|bereaved?|disown(?:ed|s)?|affiliation|shut out|let in|is told|are told|was told|were told|what was made|` +
		`who has it|taken out|majority's word|gives? its word)\b`)
)

// source is a text with a name: a document, the help, or the doc comments of a package.
type source struct {
	name       string
	paragraphs []paragraph
	long       []place // lines beyond the limit
}

// paragraph is prose without code, with the lines of the file.
type paragraph struct {
	place
	text string
}

// place is a line of a file, or a help text.
type place struct {
	file string
	line int // 0: unknown
}

func (p place) String() string {
	if p.line == 0 {
		return p.file
	}
	return fmt.Sprintf("%s:%d", p.file, p.line)
}

// at returns the place of an offset in the paragraph.
func (p paragraph) at(offset int) place {
	if p.line == 0 {
		return p.place
	}
	return place{p.file, p.line + strings.Count(p.text[:offset], "\n")}
}

func (s source) count(of *regexp.Regexp) (n int) {
	for _, p := range s.paragraphs {
		n += len(of.FindAllStringIndex(p.text, -1))
	}
	return n
}

func (s source) figures() string {
	words := max(1, s.count(word))
	rate := func(of *regexp.Regexp) float64 { return 1000 * float64(s.count(of)) / float64(words) }
	return fmt.Sprintf("%d words; per 1,000 words: who/what/whom/whose %.1f, that %.1f", words, rate(riddle), rate(that))
}

func (s source) faults() (faults []string) {
	add := func(at place, rule, text string) {
		text = strings.Join(strings.Fields(text), " ")
		if len(text) > shownOfFault {
			text = text[:shownOfFault] + "..."
		}
		faults = append(faults, fmt.Sprintf("%v: %s: %s", at, rule, text))
	}
	for _, p := range s.paragraphs {
		for _, found := range forbidden.FindAllStringIndex(p.text, -1) {
			add(p.at(found[0]), "say which program, host or call", p.text[found[0]:found[1]])
		}
		for _, sentence := range p.sentences() {
			if n := len(strings.Fields(p.text[sentence[0]:sentence[1]])); n > mostWords {
				add(p.at(sentence[0]), fmt.Sprintf("sentence of %d words, at most %d", n, mostWords), p.text[sentence[0]:sentence[1]])
			}
		}
	}
	for _, at := range s.long {
		add(at, fmt.Sprintf("line of more than %d characters", mostColumns), "")
	}
	words := s.count(word)
	s.limit(words, riddle, mostRiddles, freeRiddles, "who, what, whom, whose", add)
	s.limit(words, that, mostThats, freeThats, `"that"`, add)
	return faults
}

// limit reports each place of an expression beyond its limit.
func (s source) limit(words int, of *regexp.Regexp, most float64, free int, name string, add func(place, string, string)) {
	n := s.count(of)
	if n <= free || float64(n) <= most*float64(words)/1000 {
		return
	}
	rule := fmt.Sprintf("%d times %s in %d words, at most %.0f in 1,000", n, name, words, most)
	for _, p := range s.paragraphs {
		for _, found := range of.FindAllStringIndex(p.text, -1) {
			add(p.at(found[0]), rule, p.text[max(0, found[0]-20):min(len(p.text), found[1]+20)])
		}
	}
}

// sentences returns the begin and the end of each sentence.
func (p paragraph) sentences() (found [][2]int) {
	begin := 0
	for _, end := range sentenceEnd.FindAllStringIndex(p.text, -1) {
		found = append(found, [2]int{begin, end[1]})
		begin = end[1]
	}
	return append(found, [2]int{begin, len(p.text)})
}
