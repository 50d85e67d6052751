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

// FileName returns the file name for the lock of a full key. Most keys are unchanged. Slashes, percent signs,
// control characters and a leading dot become %2F and the like. Two keys never share a name, and [KeyOf] is
// the reverse. A key is refused with a [lockfact.FieldError] if it is empty, not UTF-8, or its name is longer
// than 255 bytes.
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

// escaped reports whether the byte at position i of a key must be escaped in a file name.
func escaped(c byte, i int) bool {
	return c < ' ' || c == 0x7f || c == '/' || c == '%' || (c == '.' && i == 0)
}

// KeyOf returns the full key of a lock's file name. The error means that [FileName] never returns this name.
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
