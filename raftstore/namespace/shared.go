package namespace

import "unique"

// sharedString is a string of which there are few, in memory that all of them share. The zero value is the empty one.
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
