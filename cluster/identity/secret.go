package identity

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
)

// TokenID identifies a token. It is not secret.
type TokenID [8]byte

// ParseTokenID parses the result of String.
func ParseTokenID(text string) (TokenID, error) {
	var id TokenID
	if decoded, err := hex.DecodeString(text); err != nil || copy(id[:], decoded) != len(id) || len(decoded) != len(id) {
		return TokenID{}, fmt.Errorf("%q is no id of a token: it has %d hexadecimal digits", text, hex.EncodedLen(len(id)))
	}
	return id, nil
}

// String returns all hexadecimal digits.
func (id TokenID) String() string { return hex.EncodeToString(id[:]) }

// Secret is the secret of a token. Only [Token.Text] shows it.
type Secret [16]byte

// String hides it.
func (Secret) String() string { return "(secret)" }

// GoString hides it.
func (Secret) GoString() string { return "(secret)" }

// Hash returns the hash for the cluster's state.
func (s Secret) Hash() SecretHash { return sha256.Sum256(s.publicKey()) }

// SecretHash is the SHA-256 of the public key behind [Secret.Sign]. The secret has 128 random bits, so it
// needs no salt.
type SecretHash [sha256.Size]byte

// Contexts distinguish signatures and codes of different uses.
const (
	seedContext      = "lockfs join token: seed\x00"
	enrollContext    = "lockfs join token: certificate request\x00"
	knowTokenContext = "lockfs join token: known to the server\x00"
)

func (s Secret) privateKey() ed25519.PrivateKey {
	seed := sha256.Sum256(append([]byte(seedContext), s[:]...))
	return ed25519.NewKeyFromSeed(seed[:])
}

func (s Secret) publicKey() ed25519.PublicKey {
	return s.privateKey().Public().(ed25519.PublicKey)
}

// Sign signs a certificate request with a key derived from the secret. The secret never leaves the host. A
// receiver of the signature can only pass on this request, which is for the host's key.
func (s Secret) Sign(request []byte) (publicKey, signature []byte) {
	return s.publicKey(), ed25519.Sign(s.privateKey(), append([]byte(enrollContext), request...))
}

// CheckTokenSignature returns the hash of the secret behind the signature of a request.
func CheckTokenSignature(request, publicKey, signature []byte) (SecretHash, error) {
	if len(publicKey) != ed25519.PublicKeySize || !ed25519.Verify(publicKey, append([]byte(enrollContext), request...), signature) {
		return SecretHash{}, errors.New("the request is not signed with the secret of a join token: copy the whole token")
	}
	return sha256.Sum256(publicKey), nil
}

// Proves reports whether a code is the result of [SecretHash.Prove].
func (h SecretHash) Proves(nonce Nonce, server KeyHash, code []byte) bool {
	return hmac.Equal(code, h.Prove(nonce, server))
}

// Prove returns a code derived from the token's record in the state. A server removed before the token's
// creation cannot compute it.
func (h SecretHash) Prove(nonce Nonce, server KeyHash) []byte {
	code := hmac.New(sha256.New, h[:])
	code.Write([]byte(knowTokenContext))
	code.Write(nonce[:])
	code.Write(server[:])
	return code.Sum(nil)
}

// Equal compares in constant time.
func (h SecretHash) Equal(other SecretHash) bool {
	return subtle.ConstantTimeCompare(h[:], other[:]) == 1
}

// drawToken returns a random id and secret.
func drawToken() (TokenID, Secret) {
	var id TokenID
	var secret Secret
	_, _ = rand.Read(id[:]) // never fails (crypto/rand)
	_, _ = rand.Read(secret[:])
	return id, secret
}
