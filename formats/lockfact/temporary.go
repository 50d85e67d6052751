package lockfact

import (
	"crypto/rand"
	"regexp"
)

// temporary are the names of files that are there for a moment: those of [TemporaryName], and what tower renames to a lock.
var temporary = regexp.MustCompile(`^\.lockfs-[A-Z2-7]{26}$|\.lock\.[0-9a-f]{16}\.tmp$`)

// TemporaryName is a new name for a file that is there for a moment. Lists of locks leave such names out, and whoever
// makes a lock in the same directory removes those that a killed process left there an hour ago or earlier.
func TemporaryName() string { return ".lockfs-" + rand.Text() }

// IsTemporary tells whether a name is one of a file that is there for a moment, until a lock has its own.
func IsTemporary(name string) bool { return temporary.MatchString(name) }
