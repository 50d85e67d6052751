package formats

import (
	"errors"

	"lockfs/formats/lockfact"
)

// FactsOf gives the facts of a content, without any rule; those under one are [Rule.Govern]'s. A content that breaks a
// rule of its own format is never stale, and Facts.Invalid says what is wrong.
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

// factsOf gives the facts of a lock of this format; the error is that of its Parse.
func factsOf(format Format, content []byte, written Origin) (Facts, error) {
	k := kindOf(format)
	if k == nil {
		return Facts{}, errNone
	}
	return k.facts(content, written)
}
