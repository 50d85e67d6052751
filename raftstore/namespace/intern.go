package namespace

import "unique"

// internedString is an interned string. The zero value is empty.
type internedString struct{ handle unique.Handle[string] }

func intern(s string) internedString {
	if s == "" {
		return internedString{}
	}
	return internedString{unique.Make(s)}
}

func (s internedString) String() string {
	if s == (internedString{}) {
		return ""
	}
	return s.handle.Value()
}
