// Package strictjson reads JSON objects as the lock protocols mean them: names match exactly, no
// member appears twice, text is valid UTF-8, and nothing follows the object. encoding/json alone
// forgives all four. It takes linear time and no deeper nesting than encoding/json allows.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"unicode/utf8"
)

// Object is a JSON object and where its members stand in the text.
type Object struct {
	content []byte
	members map[string]span
	twice   error // names the first member that appears twice, of which the last counts
}

type span struct{ start, end int }

var (
	errNotUTF8   = errors.New("not valid UTF-8")
	errNotObject = errors.New("not a JSON object")
	errTrailing  = errors.New("something follows the JSON object")
)

// Parse reads one object. A content that ends too soon is io.ErrUnexpectedEOF, a member that
// appears twice an error that names it.
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

// Scan is Parse for who only wants to know what an object is meant to be: it forgives text that is not valid UTF-8, and
// a member that appears twice, of which the last counts.
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

// checkSyntax accepts exactly one JSON value, so that what walks over it later need not.
func checkSyntax(content []byte) error {
	if json.Valid(content) {
		return nil
	}
	// A decoder, unlike Unmarshal, says io.ErrUnexpectedEOF when the content ends too soon.
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

// Has reports whether the object has all of these members.
func (o *Object) Has(names ...string) bool {
	for _, name := range names {
		if _, ok := o.members[name]; !ok {
			return false
		}
	}
	return true
}

// Other is the first member that is none of these.
func (o *Object) Other(than ...string) (name string, found bool) {
	first := len(o.content)
	for member, at := range o.members {
		if at.start < first && !slices.Contains(than, member) {
			name, found, first = member, true, at.start
		}
	}
	return name, found
}

// Is reports whether a member is this string.
func (o *Object) Is(name, value string) bool {
	f := o.Fields()
	return f.String(name) == value && f.Err() == nil
}

// Raw is the text of a member's value; nil if there is no such member or it is null.
func (o *Object) Raw(name string) json.RawMessage {
	at, ok := o.members[name]
	if raw := o.content[at.start:at.end]; ok && string(raw) != "null" {
		return raw
	}
	return nil
}

// Replace gives the object's text with the value of one member changed and every other byte as it
// was. The member must be there.
func (o *Object) Replace(name string, value []byte) []byte {
	at := o.members[name]
	text := make([]byte, 0, len(o.content)-(at.end-at.start)+len(value))
	text = append(text, o.content[:at.start]...)
	text = append(text, value...)
	return append(text, o.content[at.end:]...)
}

// Render writes v as indented JSON that ends with a newline and leaves <, > and & alone.
func Render(v any) ([]byte, error) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return text.Bytes(), nil
}
