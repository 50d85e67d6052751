package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"lockfs/formats/lockfact"
)

var (
	errNotUTF8   = errors.New("not valid UTF-8")
	errNotObject = errors.New("not a JSON object")
	errTrailing  = errors.New("something follows the JSON object")
)

// Parse reads one object. The error is io.ErrUnexpectedEOF for a truncated content. For a duplicate
// member, it names the member.
func Parse(content []byte) (*Object, error) {
	if !utf8.Valid(content) {
		return nil, errNotUTF8
	}
	o, err := Scan(content)
	if err != nil {
		return nil, err
	}
	if o.twice != nil {
		return nil, o.twice
	}
	return o, nil
}

// Scan is a lenient Parse, to recognize the kind of an object. It accepts invalid UTF-8 and duplicate
// members; their last value counts.
func Scan(content []byte) (*Object, error) {
	if err := checkSyntax(content); err != nil {
		return nil, err
	}
	o := &Object{content: content, members: make(map[string]span)}
	if err := o.scan(); err != nil {
		return nil, err
	}
	return o, nil
}

// checkSyntax accepts exactly one JSON value. Later steps rely on it.
func checkSyntax(content []byte) error {
	if json.Valid(content) {
		return nil
	}
	// Unlike Unmarshal, a decoder returns io.ErrUnexpectedEOF for a truncated content.
	var value json.RawMessage
	err := json.NewDecoder(bytes.NewReader(content)).Decode(&value)
	switch {
	case err == nil:
		return errTrailing
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	}
	return err
}

// scan finds the members in valid JSON.
func (o *Object) scan() error {
	i := o.blanks(0)
	if o.content[i] != '{' {
		return errNotObject
	}
	for i = o.blanks(i + 1); o.content[i] != '}'; {
		nameEnd := o.stringEnd(i)
		name, err := unquote(o.content[i:nameEnd])
		if err != nil {
			return err
		}
		if _, twice := o.members[name]; twice && o.twice == nil {
			o.twice = &lockfact.FieldError{Field: lockfact.HolderName(name), Problem: "appears twice"}
		}
		start := o.blanks(o.blanks(nameEnd) + 1) // after the colon
		end := o.valueEnd(start)
		o.members[name] = span{start, end}
		if i = o.blanks(end); o.content[i] == ',' {
			i = o.blanks(i + 1)
		}
	}
	return nil
}

const blank = " \t\r\n"

// blanks returns the first non-blank position from i on.
func (o *Object) blanks(i int) int {
	for strings.IndexByte(blank, o.content[i]) >= 0 {
		i++
	}
	return i
}

// stringEnd returns the position after the string at i.
func (o *Object) stringEnd(i int) int {
	for i++; o.content[i] != '"'; i++ {
		if o.content[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// valueEnd returns the position after the value at i.
func (o *Object) valueEnd(i int) int {
	for depth := 0; ; {
		switch o.content[i] {
		case '"':
			i = o.stringEnd(i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\t', '\r', '\n': // only inside a deeper value
			i++
		default:
			i += bytes.IndexAny(o.content[i:], ",:}]"+blank)
		}
		if depth == 0 {
			return i
		}
	}
}

// unquote returns the text of a JSON string.
func unquote(raw []byte) (string, error) {
	if raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), nil
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err
}
