package forrst

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"lockfs/formats/lockfact"
)

const (
	maxFileName = 255
	hexDigits   = "0123456789ABCDEF"
)

// FileName is the name of the file that holds the lock of a full key. Most keys are their own names;
// slashes, percent signs, control characters and a dot in front are written as %2F and the like. Two
// keys never share a name, and [KeyOf] finds the key again. A key that is empty, not UTF-8, or whose name
// would have more than 255 bytes is refused with a [lockfact.FieldError].
func FileName(fullKey string) (string, error) {
	if fullKey == "" {
		return "", &lockfact.FieldError{Field: "key", Problem: "is required"}
	}
	if !utf8.ValidString(fullKey) {
		return "", &lockfact.FieldError{Field: "key", Problem: "must be valid UTF-8"}
	}
	var name strings.Builder
	for i := range len(fullKey) {
		if c := fullKey[i]; escaped(c, i) {
			name.Write([]byte{'%', hexDigits[c>>4], hexDigits[c&15]})
		} else {
			name.WriteByte(c)
		}
	}
	if name.Len() > maxFileName {
		problem := fmt.Sprintf("the lock's file name would have %d bytes, at most %d are possible",
			name.Len(), maxFileName)
		return "", &lockfact.FieldError{Field: "key", Problem: problem}
	}
	return name.String(), nil
}

// escaped reports whether the byte at position i of a key cannot stand for itself in a file name.
func escaped(c byte, i int) bool {
	return c < ' ' || c == 0x7f || c == '/' || c == '%' || (c == '.' && i == 0)
}

// KeyOf is the full key of a lock's file name. A name that [FileName] does not give is an error.
func KeyOf(fileName string) (string, error) {
	var key strings.Builder
	for i := 0; i < len(fileName); i++ {
		c := fileName[i]
		if c == '%' && i+2 < len(fileName) {
			high, low := strings.IndexByte(hexDigits, fileName[i+1]), strings.IndexByte(hexDigits, fileName[i+2])
			if high >= 0 && low >= 0 {
				c = byte(high<<4 | low)
				i += 2
			}
		}
		key.WriteByte(c)
	}
	if name, err := FileName(key.String()); err != nil || name != fileName {
		return "", fmt.Errorf("%q is not the file name of a lock", fileName)
	}
	return key.String(), nil
}
