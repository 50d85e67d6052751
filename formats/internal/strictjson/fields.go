package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"lockfs/formats/internal/stamp"
	"lockfs/formats/lockfact"
)

// Fields reads the members of an object one after another. It keeps the first error, which names the member.
// A null member counts as missing.
type Fields struct {
	object *Object
	err    error
}

// Fields returns a reader of the members.
func (o *Object) Fields() *Fields { return &Fields{object: o} }

// Err returns the first error.
func (f *Fields) Err() error { return f.err }

// String reads a required string.
func (f *Fields) String(name string) string {
	if !f.require(name) {
		return ""
	}
	return f.OptionalString(name)
}

// OptionalString reads a string; empty if it is missing.
func (f *Fields) OptionalString(name string) string {
	raw := f.object.Raw(name)
	if raw == nil {
		return ""
	}
	s, err := unquote(raw)
	if err != nil {
		f.fail(name, "must be a string")
	}
	return s
}

// Int reads a required integer, written without fraction or exponent.
func (f *Fields) Int(name string) int64 {
	if !f.require(name) {
		return 0
	}
	n, err := strconv.ParseInt(string(f.object.Raw(name)), 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		f.fail(name, "is out of range")
	case err != nil:
		f.fail(name, "must be an integer")
	}
	return n
}

// PID reads the required number "pid" of a process.
func (f *Fields) PID() int {
	n := f.Int("pid")
	if f.err == nil {
		f.err = lockfact.CheckPID(n)
	}
	return int(n)
}

// OptionalBool reads true or false; nil if it is missing.
func (f *Fields) OptionalBool(name string) *bool {
	raw := f.object.Raw(name)
	if raw == nil {
		return nil
	}
	var b bool
	if err := json.Unmarshal(raw, &b); err != nil {
		f.fail(name, "must be true or false")
		return nil
	}
	return &b
}

// Time reads a required RFC 3339 timestamp.
func (f *Fields) Time(name string) time.Time {
	s := f.String(name)
	if f.err != nil {
		return time.Time{}
	}
	t, err := stamp.Parse(s)
	if err != nil {
		f.fail(name, err.Error())
	}
	return t
}

// OptionalObject reads an object as text; nil if it is missing.
func (f *Fields) OptionalObject(name string) json.RawMessage {
	raw := f.object.Raw(name)
	if raw != nil && raw[0] != '{' {
		f.fail(name, "must be an object")
		return nil
	}
	return bytes.Clone(raw)
}

// Object reads a required object as text.
func (f *Fields) Object(name string) json.RawMessage {
	if !f.require(name) {
		return nil
	}
	return f.OptionalObject(name)
}

func (f *Fields) require(name string) bool {
	if f.object.Raw(name) == nil {
		f.fail(name, "is required")
	}
	return f.err == nil
}

func (f *Fields) fail(name, problem string) {
	if f.err == nil {
		f.err = &lockfact.FieldError{Field: name, Problem: problem}
	}
}

// Is reports whether a member is this string.
func (o *Object) Is(name, value string) bool {
	f := o.Fields()
	return f.String(name) == value && f.Err() == nil
}
