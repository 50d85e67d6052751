package lockfact

import "strings"

// NameSays is what the words of a name say about it ([lockfs/formats.WordsOf]). Its number is what the log has of it.
type NameSays uint8

// What a name can say. NameSaysData is a name by which programs know data, such as yarn.lock or lock.go: for it the name of
// its directory counts for nothing either.
const (
	NameSaysNothing NameSays = iota
	NameSaysLock
	NameSaysData
)

// Evidence is what makes a lock of a name that was created exclusively, whatever the format of its content: two pieces that do not
// follow from each other. Many ordinary programs create exclusively (cp, install, tar, git, mv), so one piece is not enough.
type Evidence struct {
	Name      NameSays // of its own name
	Directory NameSays // of the name of the directory in which it was created
	Size      int      // of the content or the target, in bytes
	Content   []string // the pieces that were found in the content, as phrases (lockfs/formats.EvidenceIn)
}

// Short is up to how many bytes a content counts as a statement of its own under a name that says lock: "taken", a user's name, a
// random token. It is more than a SHA-256 in hexadecimal.
const Short = 80

// Pieces counts the evidence. Replicas decide by it, so it must not change.
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

// Named reports whether the name says lock, or the name of its directory does and its own does not say that it is data.
func (e Evidence) Named() bool {
	return e.Name == NameSaysLock || e.Name == NameSaysNothing && e.Directory == NameSaysLock
}

// enough is how many pieces of evidence make a lock.
const enough = 2

// IsEnough reports whether the evidence makes a lock of an exclusive name. A short content is a piece too, next to a
// name that says lock; it is none for rules that remove (MayRemove).
func (e Evidence) IsEnough() bool {
	return e.Pieces() >= enough || e.Named() && e.Size <= Short
}

// MayRemove reports whether a rule that removes applies to an exclusive name of no format.
func (e Evidence) MayRemove() bool { return e.Pieces() >= enough }

// Supports reports whether facts of a format count under a name, which was created exclusively or not.
func (e Evidence) Supports(f Facts, exclusive bool) bool {
	return !f.Conditional || exclusive || e.Named()
}

// String lists the evidence, as what follows "it was created exclusively".
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
