package namespace

import "unique"

// sharedString is an interned string. The zero value is empty.
type sharedString struct{ handle unique.Handle[string] }

func share(s string) sharedString {
	if s == "" {
		return sharedString{}
	}
	return sharedString{unique.Make(s)}
}

func (s sharedString) String() string {
	if s == (sharedString{}) {
		return ""
	}
	return s.handle.Value()
}
