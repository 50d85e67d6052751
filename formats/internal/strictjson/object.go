// Package strictjson reads JSON objects for the lock protocols: names match exactly, no member appears twice,
// text is valid UTF-8, and nothing follows the object. encoding/json accepts all four faults. Parsing takes
// linear time, and nesting is limited as in encoding/json.
package strictjson

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Object is a JSON object with the positions of its members.
type Object struct {
	content []byte
	members map[string]span
	twice   error // the first duplicate member; its last value counts
}

type span struct{ start, end int }

// Has reports whether the object has all of these members.
func (o *Object) Has(names ...string) bool {
	for _, name := range names {
		if _, ok := o.members[name]; !ok {
			return false
		}
	}
	return true
}

// Other returns the first other member.
func (o *Object) Other(than ...string) (name string, found bool) {
	first := len(o.content)
	for member, at := range o.members {
		if at.start < first && !slices.Contains(than, member) {
			name, found, first = member, true, at.start
		}
	}
	return name, found
}

// Raw returns the text of a member's value; nil if the member is missing or null.
func (o *Object) Raw(name string) json.RawMessage {
	at, ok := o.members[name]
	if raw := o.content[at.start:at.end]; ok && string(raw) != "null" {
		return raw
	}
	return nil
}

// Replace returns the object's text with one value replaced and all other bytes unchanged. The member must
// exist.
func (o *Object) Replace(name string, value []byte) []byte {
	at := o.members[name]
	text := make([]byte, 0, len(o.content)-(at.end-at.start)+len(value))
	text = append(text, o.content[:at.start]...)
	text = append(text, value...)
	return append(text, o.content[at.end:]...)
}

// Render returns v as indented JSON with a final newline, without escaping <, > and &.
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
