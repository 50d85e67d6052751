// Package strictjson reads JSON objects as the lock protocols mean them: names match exactly, no
// member appears twice, text is valid UTF-8, and nothing follows the object. encoding/json alone
// forgives all four. It takes linear time and no deeper nesting than encoding/json allows.
package strictjson

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Object is a JSON object and where its members stand in the text.
type Object struct {
	content []byte
	members map[string]span
	twice   error // names the first member that appears twice, of which the last counts
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
