package forrst

import (
	"crypto/rand"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"lockfs/formats/lockfact"
)

const maxOwner = 255

// NewOwner returns a random UUID, version 4, as an owner token ("Owner Token Generation").
func NewOwner() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// ValidateOwner accepts any owner token of one printable line with 1 to 255 bytes, because clients may bring
// their own.
func ValidateOwner(owner string) error {
	problem := ""
	switch {
	case owner == "":
		problem = "is required"
	case len(owner) > maxOwner:
		problem = fmt.Sprintf("has %d bytes, at most %d are allowed", len(owner), maxOwner)
	case !utf8.ValidString(owner) || strings.ContainsFunc(owner, func(r rune) bool { return !unicode.IsPrint(r) }):
		problem = "must be printable"
	default:
		return nil
	}
	return &lockfact.FieldError{Field: "owner", Problem: problem}
}
