package lockfact

import (
	"crypto/rand"
	"regexp"
)

// temporary matches names of temporary files: those of [TemporaryName], and tower's before it renames them to
// a lock.
var temporary = regexp.MustCompile(`^\.lockfs-[A-Z2-7]{26}$|\.lock\.[0-9a-f]{16}\.tmp$`)

// TemporaryName returns a new name for a temporary file. Lists of locks omit such names. A program that
// creates a lock in the same directory removes such files of killed processes after an hour.
func TemporaryName() string { return ".lockfs-" + rand.Text() }

// IsTemporary reports whether a name is one of a temporary file.
func IsTemporary(name string) bool { return temporary.MatchString(name) }
