package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
)

// TokenID is which token it is. It may be shown.
type TokenID [8]byte

// ParseTokenID reads what String wrote.
func ParseTokenID(text string) (TokenID, error) {
	var id TokenID
	if decoded, err := hex.DecodeString(text); err != nil || copy(id[:], decoded) != len(id) || len(decoded) != len(id) {
		return TokenID{}, fmt.Errorf("%q is no id of a token: it has %d hexadecimal digits", text, hex.EncodedLen(len(id)))
	}
	return id, nil
}

// String is all of it, hexadecimal.
func (id TokenID) String() string { return hex.EncodeToString(id[:]) }

// Secret is what a token proves. It is never shown, but in [Token.Text].
type Secret [16]byte

// String tells nothing of it.
func (Secret) String() string { return "(secret)" }

// GoString tells nothing of it.
func (Secret) GoString() string { return "(secret)" }

// Hash is what is kept of a secret.
func (s Secret) Hash() SecretHash { return sha256.Sum256(s[:]) }

// SecretHash is the SHA-256 of a secret, which has 128 random bits: it needs no salt.
type SecretHash [sha256.Size]byte

// Equal compares in a time that does not depend on where they differ.
func (h SecretHash) Equal(other SecretHash) bool {
	return subtle.ConstantTimeCompare(h[:], other[:]) == 1
}

// drawToken is an id and a secret that nobody else has.
func drawToken() (TokenID, Secret) {
	var id TokenID
	var secret Secret
	_, _ = rand.Read(id[:]) // never fails (crypto/rand)
	_, _ = rand.Read(secret[:])
	return id, secret
}
