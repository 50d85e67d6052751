package forrst

import (
	"crypto/sha256"
	"encoding/hex"

	"lockfs/formats/lockfact"
)

// Identity tells whether two requests are one that was sent again. The id alone does not: those of different
// clients may be the same.
type Identity struct {
	ID  string // fit to be shown
	Sum string // SHA-256 of the whole request, in hexadecimal
}

// Identify is the identity of a request with this id and body.
func Identify(id string, body []byte) Identity {
	sum := sha256.Sum256(body)
	return Identity{ID: lockfact.HolderName(id), Sum: hex.EncodeToString(sum[:])}
}

// String is one line of at most 320 bytes.
func (i Identity) String() string { return i.ID + " " + i.Sum }
