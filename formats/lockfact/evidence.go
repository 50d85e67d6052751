package lockfact

import "strings"

// NameSays is the meaning of a name's words ([lockfs/formats.WordsOf]). Its number is in the log.
type NameSays uint8

// Meanings of a name. NameSaysData is for well-known names of data, such as yarn.lock or lock.go. For these,
// the name of the directory does not count either.
const (
	NameSaysNothing NameSays = iota
	NameSaysLock
	NameSaysData
)

// Evidence decides whether an exclusively created name is a lock, in any format of its content. It takes two
// independent pieces. Many ordinary programs create exclusively (cp, install, tar, git, mv), so one is not
// enough.
type Evidence struct {
	Name      NameSays // of its own name
	Directory NameSays // of the name of its directory at creation
	Size      int      // of the content or the target, in bytes
	Content   []string // pieces found in the content, as phrases (lockfs/formats.EvidenceIn)
}

// Short is the maximum size in bytes of a content that counts as a statement under a name of a lock: "taken",
// a user's name, a random token. A SHA-256 in hexadecimal is shorter.
const Short = 80

// Pieces returns the number of pieces. Replicas decide by it, so it must not change.
func (e Evidence) Pieces() int {
	pieces := len(e.Content)
	if e.Size == 0 {
		pieces++
	}
	if e.Named() {
		pieces++
	}
	return pieces
}

// Named reports whether the name indicates a lock. If it indicates nothing, the name of its directory counts.
func (e Evidence) Named() bool {
	return e.Name == NameSaysLock || e.Name == NameSaysNothing && e.Directory == NameSaysLock
}

// enough is the number of pieces for a lock.
const enough = 2

// IsEnough reports whether the evidence makes an exclusive name a lock. Under a name of a lock, a short
// content is a piece too, but not for rules that remove (MayRemove).
func (e Evidence) IsEnough() bool {
	return e.Pieces() >= enough || e.Named() && e.Size <= Short
}

// MayRemove reports whether a rule that removes applies to an exclusive name of no format.
func (e Evidence) MayRemove() bool { return e.Pieces() >= enough }

// Supports reports whether facts of a format count under a name, exclusively created or not.
func (e Evidence) Supports(f Facts, exclusive bool) bool {
	return !f.Conditional || exclusive || e.Named()
}

// String lists the evidence, to follow "it was created exclusively".
func (e Evidence) String() string {
	var pieces []string
	if e.Size == 0 {
		pieces = append(pieces, "is empty")
	}
	pieces = append(pieces, e.Content...)
	switch {
	case e.Name == NameSaysLock:
		pieces = append(pieces, "has a name that says lock")
	case e.Named():
		pieces = append(pieces, "lies in a directory with a name that says lock")
	}
	if e.Named() && e.Pieces() < enough && e.Size <= Short {
		pieces = append(pieces, "is short")
	}
	switch n := len(pieces); n {
	case 0:
		return ""
	case 1:
		return pieces[0]
	default:
		return strings.Join(pieces[:n-1], ", ") + " and " + pieces[n-1]
	}
}
