package lockfact

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// maxHolder is the maximum size of a name in the facts, in bytes.
const maxHolder = 255

// HolderName makes a name fit for lists: one printable line of at most 255 bytes. An ordinary name stays. A
// name with control characters becomes a Go string literal. A longer name keeps its beginning and gets a
// checksum of the whole, so two names stay two.
func HolderName(name string) string {
	if name != "" && (name[0] == '"' || !printable(name)) {
		name = strconv.Quote(name)
	}
	if len(name) <= maxHolder {
		return name
	}
	return shorten(name)
}

// Problem returns the text of an error for [Facts], fit for lists like a [HolderName].
func Problem(err error) string { return HolderName(err.Error()) }

func printable(s string) bool {
	for _, r := range s {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return false
		}
	}
	return true
}

// shorten cuts a name to maxHolder bytes, with a checksum of the whole at the end.
func shorten(name string) string {
	sum := sha256.Sum256([]byte(name))
	end := "...sha256:" + hex.EncodeToString(sum[:])
	cut := maxHolder - len(end)
	for !utf8.RuneStart(name[cut]) {
		cut--
	}
	return name[:cut] + end
}
