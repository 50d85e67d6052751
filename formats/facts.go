package formats

import (
	"errors"

	"lockfs/formats/lockfact"
)

// FactsOf returns the facts of a content without any rule; [Rule.Govern] applies one. A content that breaks a
// rule of its format is never stale, and Facts.Invalid has the problem.
func FactsOf(content []byte, written Origin) Facts {
	format := Detect(content)
	if format == None {
		return lockfact.NoneFacts(written.Host)
	}
	facts, err := factsOf(format, content, written)
	if err != nil {
		return lockfact.InvalidFacts(format, err, kindOf(format).guard, written.Host)
	}
	return facts
}

var errNone = errors.New("of no known format")

// factsOf returns the facts of a lock of this format, or the error of its Parse.
func factsOf(format Format, content []byte, written Origin) (Facts, error) {
	k := kindOf(format)
	if k == nil {
		return Facts{}, errNone
	}
	return k.facts(content, written)
}
