package forrst

import (
	"crypto/sha256"
	"encoding/hex"

	"lockfs/formats/lockfact"
)

// Identity identifies a request that is sent again. The id is not enough: requests of different clients may
// share it.
type Identity struct {
	ID  string // safe for terminals
	Sum string // SHA-256 of the whole request, in hexadecimal
}

// Identify returns the identity of a request with this id and body.
func Identify(id string, body []byte) Identity {
	sum := sha256.Sum256(body)
	return Identity{ID: lockfact.HolderName(id), Sum: hex.EncodeToString(sum[:])}
}

// String returns one line of at most 320 bytes.
func (i Identity) String() string { return i.ID + " " + i.Sum }
