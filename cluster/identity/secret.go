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

// Hash is the part of a secret that the cluster stores.
func (s Secret) Hash() SecretHash { return sha256.Sum256(s.publicKey()) }

// SecretHash is the SHA-256 of the public key that [Secret.Sign] signs with. The secret has 128 random bits, so it needs no salt.
type SecretHash [sha256.Size]byte

// Contexts keep a signature or a code from being taken for another one.
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

// Sign signs a certificate request with the key that is made of the secret. The secret itself never leaves the host, so no server can use a
// token that a host has joined with: a receiver of the signature can only pass on this request, which is for the key of that host.
func (s Secret) Sign(request []byte) (publicKey, signature []byte) {
	return s.publicKey(), ed25519.Sign(s.privateKey(), append([]byte(enrollContext), request...))
}

// CheckTokenSignature returns the hash of the secret that a certificate request was signed with. The error is that it was not.
func CheckTokenSignature(request, publicKey, signature []byte) (SecretHash, error) {
	if len(publicKey) != ed25519.PublicKeySize || !ed25519.Verify(publicKey, append([]byte(enrollContext), request...), signature) {
		return SecretHash{}, errors.New("the request is not signed with the secret of a join token: copy the whole token")
	}
	return sha256.Sum256(publicKey), nil
}

// Proves reports whether a code is that of [SecretHash.Prove].
func (h SecretHash) Proves(nonce Nonce, server KeyHash, code []byte) bool {
	return hmac.Equal(code, h.Prove(nonce, server))
}

// Prove returns a code that only a server with the token in its state can make. A server that was removed before the token was made does not.
func (h SecretHash) Prove(nonce Nonce, server KeyHash) []byte {
	code := hmac.New(sha256.New, h[:])
	code.Write([]byte(knowTokenContext))
	code.Write(nonce[:])
	code.Write(server[:])
	return code.Sum(nil)
}

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
