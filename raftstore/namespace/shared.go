package namespace

import (
	"unique"

	"lockfs/formats/lockfact"
)

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

// words are those that contents are described with.
var words = func() map[string]string {
	words := make(map[string]string)
	for _, f := range lockfact.Formats() {
		words[string(f)] = string(f)
	}
	for _, word := range []string{
		string(lockfact.GuardHost), string(lockfact.GuardAnyone), string(lockfact.GuardOwner), string(lockfact.Keep), string(lockfact.Remove),
	} {
		words[word] = word
	}
	return words
}()

// word is the same word, in memory that all share.
func word(s string) string {
	if known, found := words[s]; found {
		return known
	}
	return s
}
