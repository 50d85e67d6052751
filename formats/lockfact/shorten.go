package lockfact

import (
	"crypto/sha256"
	"encoding/hex"
	"unicode/utf8"
)

// shorten cuts a name to maxHolder bytes, ending it with a checksum of all of it.
func shorten(name string) string {
	sum := sha256.Sum256([]byte(name))
	end := "...sha256:" + hex.EncodeToString(sum[:])
	cut := maxHolder - len(end)
	for !utf8.RuneStart(name[cut]) {
		cut--
	}
	return name[:cut] + end
}
